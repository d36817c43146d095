import { type Command, InvalidArgumentError, Option } from "commander";
import { chunkSizes, chunkTokens } from "../../chunk/index.js";
import type { CommandContext } from "../command.js";
import { hashBlockSize, readBlockHashes } from "../input/block-hashes.js";
import { readInput } from "../input/read-input.js";
import { jsonText } from "../json.js";
import { addFileOption, addJsonOption, type FileOption, type JsonOption, wholeOption } from "../options.js";
import { UsageError } from "../usage-error.js";

interface ChunksOptions extends JsonOption, FileOption {
  readonly tokenLen?: number | undefined;
  readonly blockSize?: number | undefined;
  readonly hashBlockSize?: number | undefined;
  readonly maskNum: number;
  readonly chunkMask?: readonly boolean[] | undefined;
  readonly putStep: number;
  readonly putStepRank: number;
}

const HELP = `
Hashes: as arguments, in a file or on stdin; hex, or what mooncake-kv hash prints, as text or JSON, which brings the hash
block size, too. Bare hashes need --block-size.

Prints one line a chunk: START END HASH.`;

/** `mooncake-kv chunks` */
export function define(command: Command, context: CommandContext): void {
  command
    .argument("[hashes...]", "block hashes")
    .addOption(wholeOption("--token-len <tokens>", "tokens to cover (default: all that have a hash)"))
    .addOption(wholeOption("--block-size <tokens>", "tokens of one chunk (default: hash block size)", 1))
    .addOption(
      wholeOption(
        "--hash-block-size <tokens>",
        "tokens of one hash (default: what the input says, or block size)",
        1,
      ),
    )
    .addOption(wholeOption("--mask-num <tokens>", "leave out this many tokens at the beginning").default(0))
    .addOption(
      new Option("--chunk-mask <bits>", "which chunks are wanted after --mask-num, such as 1011").argParser(
        chunkMask,
      ),
    )
    .addOption(wholeOption("--put-step <n>", "ranks that take turns in saving", 1).default(1))
    .addOption(wholeOption("--put-step-rank <n>", "which of them this one is").default(0));
  addJsonOption(addFileOption(command, "block hashes"))
    .addHelpText("after", HELP)
    .action((hashes: readonly string[], options: ChunksOptions) => run(hashes, options, context));
}

async function run(args: readonly string[], options: ChunksOptions, context: CommandContext): Promise<void> {
  const { maskNum, chunkMask, putStep, putStepRank } = options;
  if (putStepRank >= putStep)
    throw new UsageError(
      `--put-step-rank ${putStepRank} is not below --put-step ${putStep}: no chunk is its turn`,
    );
  if (options.blockSize !== undefined && options.hashBlockSize !== undefined)
    chunkSizes(options.blockSize, options.hashBlockSize);
  const input = readBlockHashes(await readInput(context, { args, file: options.file, what: "hashes" }));
  const own = input.blockSize === undefined && input.spans === undefined;
  const hashed = hashBlockSize(input, {
    flag: own ? "--block-size" : "--hash-block-size",
    size: options.hashBlockSize ?? (own ? options.blockSize : undefined),
  });
  const sizes = chunkSizes(options.blockSize ?? hashed, hashed);
  const tokenLen = options.tokenLen ?? input.hashes.length * sizes.hashBlockSize;
  const chunks = chunkTokens(sizes, tokenLen, input.hashes, {
    maskNum,
    ...(chunkMask && { chunkMask }),
    putStep,
    putStepRank,
  });
  const hex = (index: number) => Buffer.from(chunks.hash(index)).toString("hex");
  const spans = Array.from(
    { length: chunks.length },
    (_, index) => [chunks.starts[index]!, chunks.ends[index]!, hex(index)] as const,
  );
  if (options.json) {
    const { blockSize, hashBlockSize } = sizes;
    await context.stdout.line(
      jsonText({ block_size: blockSize, hash_block_size: hashBlockSize, token_len: tokenLen, chunks: spans }),
    );
  } else await context.stdout.lines(spans.map((span) => span.join(" ")));
}

function chunkMask(text: string): boolean[] {
  if (!/^[01]+$/.test(text)) throw new InvalidArgumentError("It must be made of 0 and 1, one a chunk.");
  return Array.from(text, (bit) => bit === "1");
}
