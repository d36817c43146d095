import { describe, MooncakeKvError } from "../../errors.js";
import { BlobBlockHashes } from "../../hash/index.js";
import { UsageError } from "../usage-error.js";
import { blockSizeOfSpans, isSpan, type Span } from "./hash-spans.js";
import { hexBytes, type Members, optionalCount } from "./members.js";
import { type InputText, looksLikeJson, parseJson } from "./read-input.js";

/** Block hashes, and what the output of `hash` and `chunks` says about them. */
export interface InputHashes {
  readonly hashes: BlobBlockHashes;
  /** Tokens of one hashed block; undefined where the input does not say. */
  readonly blockSize?: number | undefined;
  readonly numTokens?: number | undefined;
  /** The token range of each hash, where they stand beside it. */
  readonly spans?: readonly Span[] | undefined;
  /** Where the hashes came from, for messages. */
  readonly source: string;
}

/** A line of `hash` or `chunks`: START END HASH. */
const SPAN_LINE = /^\s*(\d+)\s+(\d+)\s+([0-9a-fA-F]{32,})\s*$/;

/**
 * Block hashes as hex with spaces, commas or line ends between them, as a JSON array, or as printed by `hash` and
 * `chunks` (as text or as JSON). Lines that begin with # are left out.
 *
 * @throws MooncakeKvError `ERR_HASH` for what is no hash, UsageError for JSON of another shape or no hash at all.
 */
export function readBlockHashes(input: InputText): InputHashes {
  if (looksLikeJson(input.text)) return hashesOfJson(parseJson(input), input.source);
  const words: string[] = [];
  const spans: Span[] = [];
  for (const line of input.text.split("\n")) {
    if (line.trimStart().startsWith("#")) continue;
    const span = SPAN_LINE.exec(line);
    if (span) {
      words.push(span[3]!);
      spans.push([Number(span[1]), Number(span[2])]);
    } else for (const word of line.split(/[\s,]+/)) if (word !== "") words.push(word);
  }
  if (words.length === 0) throw new UsageError("no block hashes in the input; write [] for none");
  if (spans.length > 0 && spans.length < words.length)
    throw new UsageError(`${input.source}: only some of the lines are START END HASH; all must be, or none`);
  return { hashes: parseHashes(words), source: input.source, ...(spans.length > 0 && { spans }) };
}

function hashesOfJson(value: unknown, source: string): InputHashes {
  if (Array.isArray(value)) return { hashes: parseHashes(value), source };
  const members = value as Members;
  const { block_hashes: hashes, chunks } = members;
  if (Array.isArray(hashes))
    return {
      ...{ hashes: parseHashes(hashes), source },
      blockSize: optionalCount(members, "block_size", source),
      numTokens: optionalCount(members, "num_tokens", source),
    };
  if (Array.isArray(chunks)) return hashesOfChunks(chunks, source);
  throw new UsageError(`${source}: the object has no list block_hashes, as hash --json prints it`);
}

function hashesOfChunks(chunks: readonly unknown[], source: string): InputHashes {
  const rows = chunks.map((chunk, index) => {
    if (!Array.isArray(chunk) || chunk.length !== 3 || !isSpan(chunk[0], chunk[1]))
      throw new UsageError(
        `${source}: chunks[${index}] is ${describe(chunk)}; a chunk is [start, end, hash]`,
        { index },
      );
    return chunk as [number, number, unknown];
  });
  return {
    hashes: parseHashes(rows.map(([, , hash]) => hash)),
    source,
    ...(rows.length > 0 && { spans: rows.map(([start, end]): Span => [start, end]) }),
  };
}

/**
 * Tokens of one hash, as the input says it; undefined where it does not.
 *
 * @throws UsageError where the ranges in the input are not those of a prompt.
 */
export function saidBlockSize({ blockSize, spans, source }: InputHashes): number | undefined {
  const said = blockSize ?? (spans && blockSizeOfSpans(spans, source));
  return said === 0 ? undefined : said;
}

/** The error for hashes of which nobody says what they are of. */
export function bareHashes({ source }: InputHashes, flag: string): UsageError {
  return new UsageError(
    `${source}: bare hashes don't say how many tokens a block has; add ${flag}, or pass on what mooncake-kv hash prints`,
  );
}

/**
 * Tokens of one hash, on which input and option must agree: hashes of blocks of 4 tokens, taken for blocks of 16, would be
 * looked for in the wrong places.
 *
 * @param option its name, and its value where it was given.
 * @throws UsageError where they differ, where neither says it, or where the ranges in the input are not those of a prompt.
 */
export function hashBlockSize(
  input: InputHashes,
  option: { readonly flag: string; readonly size: number | undefined },
): number {
  const said = saidBlockSize(input);
  const { flag, size } = option;
  if (said !== undefined && size !== undefined && said !== size)
    throw new UsageError(`the hashes are of blocks of ${said} tokens, but ${flag} is ${size}`, {
      blockSize: said,
      option: size,
    });
  const agreed = size ?? said;
  if (agreed !== undefined) return agreed;
  // Nothing depends on it where there is no hash.
  if (input.hashes.length === 0) return 16;
  throw bareHashes(input, flag);
}

/** Bytes of a block hash: those of sha256 and xxhash. */
const LENGTHS: readonly number[] = [32, 16];

/** Hashes of hex texts. @throws MooncakeKvError `ERR_HASH` for one that is none, or lengths that differ. */
export function parseHashes(texts: readonly unknown[]): BlobBlockHashes {
  return BlobBlockHashes.from(
    texts.map((text, index) => {
      const bytes = typeof text === "string" && text !== "" ? hexBytes(text) : undefined;
      if (bytes === undefined || !LENGTHS.includes(bytes.length))
        throw new MooncakeKvError(
          "ERR_HASH",
          `block hash ${index} is ${describe(text, 80)}; a block hash is hex, 64 digits for sha256 and 32 for xxhash`,
          { index, hash: text },
        );
      return bytes;
    }),
  );
}
