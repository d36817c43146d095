import type { Command } from "commander";
import { KeyTable, keyMetadata, modelBasename, modelNameWarnings, PoolKey } from "../../key/index.js";
import type { CommandContext } from "../command.js";
import { readBlockHashes } from "../input/block-hashes.js";
import { checkKeyTexts } from "../input/key-text.js";
import { readInput } from "../input/read-input.js";
import { jsonText } from "../json.js";
import { addFileOption, addJsonOption, type FileOption, type JsonOption, rankOption } from "../options.js";
import { oneLine } from "../text.js";

interface KeyBuildOptions extends JsonOption, FileOption {
  readonly model?: string | undefined;
  readonly modelName?: string | undefined;
  readonly tpRank: number;
  readonly pcpRank: number;
  readonly dcpRank: number;
  readonly ppRank: number;
  readonly groupId: number;
  readonly cachePrefix: string;
  readonly storeNamespace: string;
}

const HELP = `
Hashes: as arguments, in a file or on stdin; hex, or what mooncake-kv hash prints, as text or JSON:
  mooncake-kv hash 1 2 3 4 --block-size 4 | mooncake-kv key build --model Qwen/Qwen3-8B

Prints one key a line. Only the last part of the model path enters a key; a served model name does not.`;

/** `mooncake-kv key build` */
export function define(command: Command, context: CommandContext): void {
  const rank = (flags: string, description: string) => rankOption(flags, description).default(0);
  command
    .argument("[hashes...]", "block hashes")
    .option("--model <path>", "model path or name, as given to the engine")
    .option("--model-name <name>", "the model segment of the key itself")
    .addOption(rank("--tp-rank <n>", "tensor-parallel rank, or shard of a shared layout"))
    .addOption(rank("--pcp-rank <n>", "prefill-context-parallel rank"))
    .addOption(rank("--dcp-rank <n>", "decode-context-parallel rank"))
    .addOption(rank("--pp-rank <n>", "pipeline-parallel rank"))
    .addOption(rank("--group-id <n>", "cache group"))
    .option("--cache-prefix <text>", "cache_prefix of the deployment", "")
    .option("--store-namespace <text>", "namespace of a payload format, such as @store_tp:4@...", "");
  addJsonOption(addFileOption(command, "block hashes"))
    .addHelpText("after", HELP)
    .action((hashes: readonly string[], options: KeyBuildOptions) => run(hashes, options, context));
}

async function run(
  args: readonly string[],
  options: KeyBuildOptions,
  context: CommandContext,
): Promise<void> {
  checkKeyTexts(options);
  const { model, modelName, tpRank, pcpRank, dcpRank, ppRank, groupId } = options;
  const metadata = keyMetadata({
    modelName: modelName ?? modelBasename(model!),
    tpRank,
    pcpRank,
    dcpRank,
    ppRank,
    groupId,
    cachePrefix: options.cachePrefix,
    storeNamespace: options.storeNamespace,
  });
  const warnings = model === undefined ? [] : modelNameWarnings(model);
  const { hashes } = readBlockHashes(await readInput(context, { args, file: options.file, what: "hashes" }));
  const prefix = PoolKey.buildPrefix(metadata);
  const keys = KeyTable.fromHashes(prefix, hashes);
  for (const warning of warnings) await context.stderr.line(`mooncake-kv: warning: ${oneLine(warning)}`);
  if (options.json)
    await context.stdout.line(jsonText({ key_prefix: prefix, warnings, keys: keys.toArray() }));
  else await context.stdout.lines(keys);
}
