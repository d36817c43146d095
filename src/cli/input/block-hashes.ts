import { describe, MooncakeKvError } from "../../errors.js";
import { BlobBlockHashes } from "../../hash/index.js";
import { UsageError } from "../usage-error.js";
import { hexBytes, type Members } from "./members.js";
import { type InputText, looksLikeJson, parseJson } from "./read-input.js";

/** Block hashes, and what the output of `hash --json` says about them. */
export interface InputHashes {
  readonly hashes: BlobBlockHashes;
  /** Tokens of one hashed block. */
  readonly blockSize?: number | undefined;
  readonly numTokens?: number | undefined;
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
  const spans: { readonly size: number; readonly end: number }[] = [];
  for (const line of input.text.split("\n")) {
    if (line.trimStart().startsWith("#")) continue;
    const span = SPAN_LINE.exec(line);
    if (span) {
      words.push(span[3]!);
      spans.push({ size: Number(span[2]) - Number(span[1]), end: Number(span[2]) });
    } else for (const word of line.split(/[\s,]+/)) if (word !== "") words.push(word);
  }
  if (words.length === 0) throw new UsageError("no block hashes in the input; write [] for none");
  return { hashes: parseHashes(words), ...sizesOf(spans, input.source) };
}

/** What START END lines say of the blocks: one size, but for a last chunk that ends with the prompt. */
function sizesOf(
  spans: readonly { readonly size: number; readonly end: number }[],
  source: string,
): Pick<InputHashes, "blockSize" | "numTokens"> {
  const [first] = spans;
  const last = spans.at(-1);
  if (first === undefined || last === undefined) return {};
  const odd =
    spans.slice(0, -1).find(({ size }) => size !== first.size) ?? (last.size > first.size ? last : undefined);
  if (odd !== undefined)
    throw new UsageError(
      `${source}: one line has ${first.size} tokens and another ${odd.size}; block hashes are of blocks of one size`,
    );
  return { blockSize: first.size, ...(last.size < first.size && { numTokens: last.end }) };
}

function hashesOfJson(value: unknown, source: string): InputHashes {
  if (Array.isArray(value)) return { hashes: parseHashes(value) };
  const members = value as Members;
  const { block_hashes: hashes, block_size: blockSize, num_tokens: numTokens, chunks } = members;
  if (Array.isArray(hashes))
    return {
      hashes: parseHashes(hashes),
      ...(typeof blockSize === "number" && { blockSize }),
      ...(typeof numTokens === "number" && { numTokens }),
    };
  if (Array.isArray(chunks)) {
    const texts = chunks.map((chunk: unknown) => (Array.isArray(chunk) ? (chunk[2] as unknown) : chunk));
    return { hashes: parseHashes(texts), ...(typeof blockSize === "number" && { blockSize }) };
  }
  throw new UsageError(`${source}: the object has no list block_hashes, as hash --json prints it`);
}

/** Hashes of hex texts. @throws MooncakeKvError `ERR_HASH` for one that is none, or lengths that differ. */
export function parseHashes(texts: readonly unknown[]): BlobBlockHashes {
  return BlobBlockHashes.from(
    texts.map((text, index) => {
      const bytes = typeof text === "string" && text !== "" ? hexBytes(text) : undefined;
      if (bytes === undefined)
        throw new MooncakeKvError(
          "ERR_HASH",
          `block hash ${index} is ${describe(text, 80)}; a block hash is hex, 64 digits for sha256 and 32 for xxhash`,
          { index, hash: text },
        );
      return bytes;
    }),
  );
}
