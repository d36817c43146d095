import {
  type KvCacheGroupSpec,
  type KvCacheSpec,
  MooncakeStoreCoordinator,
  resolveCacheHitAlignmentTokens,
  resolveKvCacheBlockSizes,
  validateKvCacheConfig,
} from "../../coordinator/index.js";
import { describe } from "../../errors.js";
import { UsageError } from "../usage-error.js";

/** What of an engine decides where its hits end. */
export interface ShapeOptions {
  /** Tokens of a block as one rank has it: the engine's `--block-size`. */
  readonly blockSize?: number | undefined;
  /** Tokens of one hash: the engine's `--prefix-match-unit`. */
  readonly hashBlockSize?: number | undefined;
  readonly group?: readonly string[] | undefined;
  readonly pcpSize: number;
  readonly dcpSize: number;
  /** Whether speculative decoding drops the last matched block of all groups. */
  readonly eagle?: true | undefined;
}

/** An engine's groups and sizes. */
export interface EngineShape {
  readonly coordinator: MooncakeStoreCoordinator;
  /** Tokens of one hash. */
  readonly hashBlockSize: number;
}

/** Tokens of a block where nobody says anything else: vLLM's default. */
export const DEFAULT_BLOCK_SIZE: number = 16;

/** The numbers behind the block size of a `--group`. */
type Numbers = readonly (number | undefined)[];

/** The kinds of `--group`: what their further numbers are called, how many are needed, and the spec of them. */
interface Kind {
  readonly more: string;
  readonly needed: 0 | 1;
  readonly make: (blockSize: number, numbers: Numbers) => KvCacheSpec;
}

const KINDS: Readonly<Record<string, Kind>> = {
  full: { more: "", needed: 0, make: (blockSize) => ({ kind: "full", blockSize }) },
  mla: { more: "", needed: 0, make: (blockSize) => ({ kind: "mla", blockSize }) },
  swa: { more: ":WINDOW[:EXTRA]", needed: 1, make: slidingWindow("swa") },
  swa_mla: { more: ":WINDOW[:EXTRA]", needed: 1, make: slidingWindow("swa_mla") },
  rswa: {
    more: ":WINDOW",
    needed: 1,
    make: (blockSize, [window]) => ({ kind: "rswa", blockSize, rswaWindow: window! }),
  },
  chunked_local: {
    more: ":CHUNK",
    needed: 1,
    make: (blockSize, [chunk]) => ({ kind: "chunked_local", blockSize, attentionChunkSize: chunk! }),
  },
  mamba: {
    more: "",
    needed: 0,
    make: (blockSize) => ({ kind: "mamba", blockSize, mambaCacheMode: "align" }),
  },
};

/** How `--group` is written. */
export const GROUP_USAGE = "KIND[:BLOCK_SIZE[:WINDOW]][+eagle]";

/** Every kind of `--group` as it is written. */
export const GROUP_KINDS: string = Object.entries(KINDS)
  .map(([kind, { more }]) => (more === "" ? `${kind}[:BLOCK_SIZE]` : `${kind}:BLOCK_SIZE${more}`))
  .join(", ");

/** What marks a group with layers of a draft model. */
const EAGLE = "+eagle";

/**
 * Groups and sizes of the engine that the options describe, as vLLM resolves them: with one group a hash is of the block size
 * times the decode context parallel size; with several of the unit that was chosen, else of the greatest common divisor.
 *
 * @param hashed tokens of one hash, where hashes came in that say so.
 * @throws UsageError for options that do not fit together, MooncakeKvError `ERR_CONFIG` for sizes that do not.
 */
export function engineShape(options: ShapeOptions, hashed?: number): EngineShape {
  const { dcpSize, pcpSize } = options;
  const written = (options.group ?? ["full"]).map(readGroup);
  const blockSize = options.blockSize ?? inferredBlockSize(written, dcpSize, hashed);
  const [only] = written;
  if (written.length === 1 && (only!.size ?? blockSize) !== blockSize)
    throw new UsageError(
      `--block-size is ${blockSize}, but the only --group has blocks of ${only!.size} tokens; they are one thing`,
      { blockSize, size: only!.size },
    );
  const kvCacheGroups = written.map(
    ({ make, size, numbers, isEagleGroup }): KvCacheGroupSpec => ({
      kvCacheSpec: make(size ?? blockSize, numbers),
      isEagleGroup,
    }),
  );
  validateKvCacheConfig(kvCacheGroups, pcpSize);
  // Hashes that say what they are of come from an engine of that unit; with one group there is nothing to choose.
  const unit = options.hashBlockSize ?? (kvCacheGroups.length > 1 ? hashed : undefined);
  const sizes = { kvCacheGroups, blockSize, dcpWorldSize: dcpSize, prefixMatchUnit: unit };
  const resolved = resolveKvCacheBlockSizes(sizes);
  if (hashed !== undefined && hashed !== resolved.hashBlockSize)
    throw new UsageError(
      `the hashes are of blocks of ${hashed} tokens, but ${
        options.blockSize === resolved.hashBlockSize
          ? `--block-size is ${options.blockSize}`
          : `the engine that the options describe hashes blocks of ${resolved.hashBlockSize}`
      }`,
      { hashed, hashBlockSize: resolved.hashBlockSize },
    );
  const coordinator = MooncakeStoreCoordinator.fromKvCacheConfig({
    kvCacheGroups,
    ...resolved,
    dcpWorldSize: dcpSize,
    cacheHitAlignmentTokens: resolveCacheHitAlignmentTokens(sizes),
    useEagle: options.eagle ?? false,
  });
  return { coordinator, hashBlockSize: resolved.hashBlockSize };
}

/** Whether the options say of themselves how many tokens a hash is of. */
export function isSized({
  blockSize,
  hashBlockSize,
  group,
}: Pick<ShapeOptions, "blockSize" | "hashBlockSize" | "group">): boolean {
  return (
    blockSize !== undefined || hashBlockSize !== undefined || (group ?? []).some((text) => /:\d/.test(text))
  );
}

interface WrittenGroup {
  readonly kind: string;
  readonly make: Kind["make"];
  readonly size: number | undefined;
  readonly numbers: Numbers;
  readonly isEagleGroup: boolean;
}

function readGroup(text: string): WrittenGroup {
  const isEagleGroup = text.endsWith(EAGLE);
  const [kind = "", ...parts] = (isEagleGroup ? text.slice(0, -EAGLE.length) : text).split(":");
  const read = parts.map((part) => (/^[1-9]\d{0,8}$/.test(part) ? Number(part) : undefined));
  const known = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined;
  const most = 1 + (known?.more.match(/[A-Z]+/g) ?? []).length;
  const least = known?.needed ? 2 : 0;
  if (known === undefined || read.includes(undefined) || read.length > most || read.length < least)
    throw new UsageError(
      `--group ${describe(text)}: a group is one of ${GROUP_KINDS}, with ${EAGLE} behind it where it holds layers of the draft model`,
      { group: text },
    );
  const [size, ...numbers] = read;
  return { kind, make: known.make, size, numbers, isEagleGroup };
}

function slidingWindow(kind: "swa" | "swa_mla"): Kind["make"] {
  return (blockSize, [window, extra]) => ({
    kind,
    blockSize,
    slidingWindow: window!,
    ...(extra !== undefined && { extraRetainedTokens: extra }),
  });
}

/** The engine's block size where it is not given: what the only group says, or fits the hashes, or vLLM's default. */
function inferredBlockSize(
  groups: readonly WrittenGroup[],
  dcpSize: number,
  hashed: number | undefined,
): number {
  const [only] = groups;
  if (groups.length === 1 && only!.size !== undefined) return only!.size;
  if (hashed === undefined) return DEFAULT_BLOCK_SIZE;
  if (groups.length > 1) return hashed;
  // Decode context ranks share a hashed block; a recurrent state is whole on each.
  const ranks = only!.kind === "mamba" ? 1 : dcpSize;
  if (hashed % ranks !== 0)
    throw new UsageError(
      `the hashes are of blocks of ${hashed} tokens, which --dcp-size ${ranks} does not divide`,
      { hashed, dcpSize },
    );
  return hashed / ranks;
}
