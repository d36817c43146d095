import { didYouMean } from "../checks/nearest.js";
import { describe, MooncakeKvError } from "../errors.js";
import { RELEASES, type Release } from "../release.js";
import type { BinaryCodec, Codec } from "./codec.js";

/** A codec of any type, for programs that get the type's name at run time. */
export type AnyCodec = Codec<unknown, unknown> | BinaryCodec<unknown, unknown, unknown>;

/** Codecs by release and type. */
export type CodecTable = Readonly<Record<Release, Readonly<Record<string, AnyCodec>>>>;

/** The release of that name. @throws MooncakeKvError `ERR_SCHEMA` when there is none; the message lists all. */
export function releaseNamed(release: string): Release {
  const found = RELEASES.find((known) => known === release);
  if (found === undefined)
    throw new MooncakeKvError(
      "ERR_SCHEMA",
      `there is no release ${describe(release)}; the releases are ${RELEASES.join(", ")}`,
      { release },
    );
  return found;
}

/**
 * The codec of a type in a release, from a table of all releases.
 *
 * @throws MooncakeKvError `ERR_SCHEMA` when there is none; the message lists what there is, or who has the type.
 */
export function findCodec(table: CodecTable, release: string, type: string): AnyCodec {
  const codecs = table[releaseNamed(release)];
  if (Object.hasOwn(codecs, type)) return codecs[type]!;
  const elsewhere = RELEASES.filter((other) => Object.hasOwn(table[other], type));
  throw new MooncakeKvError(
    "ERR_SCHEMA",
    elsewhere.length > 0
      ? `${release} has no type ${type}; ${elsewhere.join(" and ")} ${elsewhere.length > 1 ? "have" : "has"} it`
      : `there is no type ${describe(type)}${didYouMean(type, Object.keys(codecs))}; the types of ${release} are ${Object.keys(codecs).sort().join(", ")}`,
    { release, type },
  );
}
