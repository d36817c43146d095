import { type BlobBlockHashes, BlockHasher, type HashAlgorithm, type HashRequest } from "../../hash/index.js";
import type { Release } from "../../release.js";
import type { CommandContext } from "../command.js";
import { readBlockHashes } from "../input/block-hashes.js";
import { readHashRequest } from "../input/hash-request.js";
import { readInput } from "../input/read-input.js";
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
  /** Default: 16, as in vLLM. */
  readonly blockSize?: number | undefined;
  readonly seed?: string | undefined;
  readonly loraName?: string | undefined;
  readonly loraPath?: string | undefined;
  readonly cacheSalt?: string | undefined;
}

/**
 * The prompt of a command line: block hashes, a text, or token ids.
 *
 * @throws UsageError or MooncakeKvError for input that is none of them.
 */
export async function readPrompt(
  args: readonly string[],
  options: PromptOptions,
  context: CommandContext,
): Promise<Prompt> {
  const { file, tokenizer } = options;
  if (options.hashes === true) {
    if (tokenizer !== undefined) throw new UsageError("--hashes and --tokenizer exclude each other");
    const input = await readInput(context, { args, file, what: "block hashes" });
    const { hashes, blockSize, numTokens } = readBlockHashes(input);
    if (blockSize !== undefined && options.blockSize !== undefined && blockSize !== options.blockSize)
      throw new UsageError(
        `the hashes are of blocks of ${blockSize} tokens, but --block-size is ${options.blockSize}`,
        { blockSize, option: options.blockSize },
      );
    return { blockHashes: hashes, blockSize: blockSize ?? blockSizeOf(options), numTokens };
  }
  const request = await readRequest(args, options, context);
  const hasher = await BlockHasher.create({
    release: options.release,
    algorithm: options.algorithm,
    blockSize: blockSizeOf(options),
    seed: options.seed ?? context.env["PYTHONHASHSEED"],
  });
  const session = hasher.session(request);
  session.advance();
  return { blockHashes: session.hashes, blockSize: blockSizeOf(options), numTokens: session.numTokens };
}

/** Tokens of one hashed block, where the input does not say. */
export function blockSizeOf({ blockSize = 16 }: Pick<PromptOptions, "blockSize">): number {
  return blockSize;
}

async function readRequest(
  args: readonly string[],
  options: PromptOptions,
  context: CommandContext,
): Promise<HashRequest> {
  const { file, tokenizer, specialTokens, loraName, loraPath, cacheSalt } = options;
  if (loraPath !== undefined && loraName === undefined)
    throw new UsageError("--lora-path without a LoRA name; add --lora-name");
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
