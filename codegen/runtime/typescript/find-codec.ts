import type { BinaryCodec, Codec } from "./codec.js";
import { describe, MooncakeKvError } from "./errors.js";
import { RELEASES, type Release } from "./releases.js";

/** A codec of any type, for programs that get the type's name at run time. */
export type AnyCodec = Codec<unknown, unknown> | BinaryCodec<unknown, unknown, unknown>;

/** Codecs by release and type. */
export type CodecTable = Readonly<Record<Release, Readonly<Record<string, AnyCodec>>>>;

/**
 * The codec of a type in a release.
 *
 * @throws MooncakeKvError `ERR_SCHEMA` when there is none; the message lists what there is.
 */
export function findCodec(table: CodecTable, release: string, type: string): AnyCodec {
  const details = { release, type };
  if (!RELEASES.some((known) => known === release))
    throw new MooncakeKvError(
      "ERR_SCHEMA",
      `there is no release ${describe(release)}; the releases are ${RELEASES.join(", ")}`,
      details,
    );
  const types = table[release as Release];
  if (Object.hasOwn(types, type)) return types[type]!;
  const elsewhere = RELEASES.filter((other) => Object.hasOwn(table[other], type));
  throw new MooncakeKvError(
    "ERR_SCHEMA",
    elsewhere.length > 0
      ? `${release} has no type ${type}; ${elsewhere.join(" and ")} ${elsewhere.length > 1 ? "have" : "has"} it`
      : `there is no type ${describe(type)}; the types of ${release} are ${Object.keys(types).sort().join(", ")}`,
    details,
  );
}
