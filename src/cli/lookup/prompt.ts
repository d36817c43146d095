import { type BlobBlockHashes, BlockHasher, type HashAlgorithm, type HashRequest } from "../../hash/index.js";
import type { Release } from "../../release.js";
import type { CommandContext } from "../command.js";
import { bareHashes, readBlockHashes, saidBlockSize } from "../input/block-hashes.js";
import { readHashRequest } from "../input/hash-request.js";
import { checkLora } from "../input/lora.js";
import { checkNoneHash } from "../input/none-hash.js";
import { readInput } from "../input/read-input.js";
import { unshareableRoot } from "../input/shared-root.js";
import { UsageError } from "../usage-error.js";
import { isSized, type ShapeOptions } from "./engine-shape.js";
import { tokenize } from "./tokenizer.js";

/** What a lookup asks about. */
export interface Prompt {
  readonly blockHashes: BlobBlockHashes;
  /** Tokens of one hash. */
  readonly blockSize: number;
  /** Tokens of the prompt; undefined where only its hashes are known. */
  readonly numTokens: number | undefined;
}

/** Where the prompt is, and how the engine hashes it. */
export interface PromptOptions extends Pick<ShapeOptions, "blockSize" | "hashBlockSize" | "group"> {
  readonly file?: string | undefined;
  readonly hashes?: true | undefined;
  readonly tokenizer?: string | undefined;
  readonly specialTokens: boolean;
  readonly release: Release;
  readonly algorithm: HashAlgorithm;
  readonly noneHash?: Uint8Array | undefined;
  readonly lookahead: number;
  readonly seed?: string | undefined;
  readonly loraName?: string | undefined;
  readonly loraPath?: string | undefined;
  readonly cacheSalt?: string | undefined;
}

/**
 * The prompt of a command line: block hashes, a text, or token ids. The options are checked before anything is read.
 *
 * @param sizeOf tokens of one hash of the engine; refuses what hashes that came in say of themselves, if it does not fit.
 * @throws UsageError or MooncakeKvError for options that do not fit together, and for input that is none of them.
 */
export async function readPrompt(
  args: readonly string[],
  options: PromptOptions,
  context: CommandContext,
  sizeOf: (said?: number) => number,
): Promise<Prompt> {
  if (options.hashes === true) return readHashes(args, options, context, sizeOf);
  checkLora(options);
  checkNoneHash(options);
  const blockSize = sizeOf();
  const hasher = await BlockHasher.create({
    ...{ release: options.release, algorithm: options.algorithm, blockSize },
    seed: options.noneHash ? undefined : (options.seed ?? context.env["PYTHONHASHSEED"]),
    noneHash: options.noneHash,
    numHashLookaheadTokens: options.lookahead,
    rootSharing: "private",
  });
  if (!hasher.shareable) throw unshareableRoot(hasher);
  const session = hasher.session(await readRequest(args, options, context));
  session.advance();
  return { blockHashes: session.hashes, blockSize, numTokens: session.numTokens };
}

async function readHashes(
  args: readonly string[],
  options: PromptOptions,
  context: CommandContext,
  sizeOf: (said?: number) => number,
): Promise<Prompt> {
  if (options.tokenizer !== undefined) throw new UsageError("--hashes and --tokenizer exclude each other");
  const input = await readInput(context, { args, file: options.file, what: "block hashes" });
  const hashed = readBlockHashes(input);
  const said = saidBlockSize(hashed);
  if (said === undefined && hashed.hashes.length > 0 && !isSized(options))
    throw bareHashes(hashed, "--block-size");
  return { blockHashes: hashed.hashes, blockSize: sizeOf(said), numTokens: hashed.numTokens };
}

async function readRequest(
  args: readonly string[],
  options: PromptOptions,
  context: CommandContext,
): Promise<HashRequest> {
  const { file, tokenizer, specialTokens, loraName, loraPath, cacheSalt } = options;
  const more = {
    ...(loraName !== undefined && {
      loraRequest: { loraName, ...(loraPath !== undefined && { loraPath }) },
    }),
    ...(cacheSalt !== undefined && { cacheSalt }),
  };
  if (tokenizer === undefined) {
    const input = await readInput(context, { args, file, what: "token ids" });
    return { ...readHashRequest(input), ...more };
  }
  const words = args.length > 0 ? [args.join(" ")] : [];
  const { text } = await readInput(context, { args: words, file, what: "text" });
  return { promptTokenIds: await tokenize(text, { tokenizer, specialTokens }), ...more };
}
