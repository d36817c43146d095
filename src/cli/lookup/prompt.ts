import { type BlobBlockHashes, BlockHasher, type HashAlgorithm, type HashRequest } from "../../hash/index.js";
import type { Release } from "../../release.js";
import type { CommandContext } from "../command.js";
import { hashBlockSize, readBlockHashes } from "../input/block-hashes.js";
import { readHashRequest } from "../input/hash-request.js";
import { checkLora } from "../input/lora.js";
import { readInput } from "../input/read-input.js";
import { unshareableRoot } from "../input/shared-root.js";
import { UsageError } from "../usage-error.js";
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
export interface PromptOptions {
  readonly file?: string | undefined;
  readonly hashes?: true | undefined;
  readonly tokenizer?: string | undefined;
  readonly specialTokens: boolean;
  readonly release: Release;
  readonly algorithm: HashAlgorithm;
  /** Tokens of one hash, where it was said. */
  readonly blockSize?: number | undefined;
  readonly seed?: string | undefined;
  readonly loraName?: string | undefined;
  readonly loraPath?: string | undefined;
  readonly cacheSalt?: string | undefined;
}

/** Tokens of a block where nobody says anything else: vLLM's default. */
export const DEFAULT_BLOCK_SIZE: number = 16;

/**
 * The prompt of a command line: block hashes, a text, or token ids. The options are checked before anything is read.
 *
 * @throws UsageError or MooncakeKvError for options that do not fit together, and for input that is none of them.
 */
export async function readPrompt(
  args: readonly string[],
  options: PromptOptions,
  context: CommandContext,
): Promise<Prompt> {
  if (options.hashes === true) return readHashes(args, options, context);
  checkLora(options);
  const { release, algorithm, blockSize = DEFAULT_BLOCK_SIZE } = options;
  const hasher = await BlockHasher.create({
    ...{ release, algorithm, blockSize },
    seed: options.seed ?? context.env["PYTHONHASHSEED"],
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
): Promise<Prompt> {
  if (options.tokenizer !== undefined) throw new UsageError("--hashes and --tokenizer exclude each other");
  const input = await readInput(context, { args, file: options.file, what: "block hashes" });
  const hashed = readBlockHashes(input);
  return {
    blockHashes: hashed.hashes,
    blockSize: hashBlockSize(hashed, { flag: "--block-size", size: options.blockSize }),
    numTokens: hashed.numTokens,
  };
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
