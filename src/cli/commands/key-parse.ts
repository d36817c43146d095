import type { Command } from "commander";
import { isMooncakeKvError, type MooncakeKvError } from "../../errors.js";
import { type KeyHead, type ParsedKey, parseKey } from "../../key/index.js";
import type { CommandContext } from "../command.js";
import { ownerOfKey } from "../input/foreign-keys.js";
import { readKeys } from "../input/keys.js";
import { readInput } from "../input/read-input.js";
import { jsonText } from "../json.js";
import { addFileOption, addJsonOption, type FileOption, type JsonOption } from "../options.js";
import { oneLine, printable, table } from "../text.js";
import { UsageError } from "../usage-error.js";

interface KeyParseOptions extends JsonOption, FileOption {
  readonly modelName?: string | undefined;
}

const HELP = `
Keys: as arguments, or one a line in a file or on stdin; also what mooncake-kv key build --json prints.

A key is read from the right: hash, group, ranks, configuration fingerprint. What is left, the head, holds cache
prefix, model and store namespace. Prefix and model may contain @, so that a head can have several readings; all are
listed. With --model-name the head has one.

A text that is no such key gets a line that says why, and whose key it is where that can be told (vllm-ascend, LMCache,
SGLang); the others are read all the same. Exit status: 1 when there was one.`;

/** `mooncake-kv key parse` */
export function define(command: Command, context: CommandContext): void {
  command
    .argument("[keys...]", "store keys")
    .option("--model-name <name>", "the model segment; makes every head certain");
  addJsonOption(addFileOption(command, "keys"))
    .addHelpText("after", HELP)
    .action((keys: readonly string[], options: KeyParseOptions) => run(keys, options, context));
}

async function run(
  args: readonly string[],
  options: KeyParseOptions,
  context: CommandContext,
): Promise<void> {
  const input = await readInput(context, { args, file: options.file, what: "keys" });
  const keys = readKeys(input);
  const { modelName } = options;
  if (modelName === "")
    throw new UsageError("--model-name is empty; leave it out where the model is unknown");
  const read = keys.map((key) => readKey(key, modelName));
  if (read.some(({ parsed }) => parsed === undefined)) context.exitCode = 1;
  if (options.json) {
    await context.stdout.line(jsonText(read.map(readJson)));
    return;
  }
  for (const [index, { key, parsed, error, owner }] of read.entries()) {
    if (index > 0) await context.stdout.line();
    if (parsed) await context.stdout.lines(keyLines(key, parsed));
    else {
      const whose = owner === undefined ? "" : `a key of ${owner}; `;
      await context.stdout.lines([printable(key), `  not read: ${whose}${oneLine(error.message)}`]);
    }
  }
}

/** A key that was read, or why it was not. */
type Read = { readonly key: string } & (
  | { readonly parsed: ParsedKey; readonly error?: undefined; readonly owner?: undefined }
  | { readonly parsed?: undefined; readonly error: MooncakeKvError; readonly owner: string | undefined }
);

function readKey(key: string, modelName: string | undefined): Read {
  try {
    return { key, parsed: parseKey(key, { modelName }) };
  } catch (error) {
    if (!isMooncakeKvError(error, "ERR_KEY")) throw error;
    return { key, error, owner: ownerOfKey(key) };
  }
}

function readJson({ key, parsed, error, owner }: Read): Record<string, unknown> {
  if (parsed) return keyJson(key, parsed);
  return { key, error: { code: error.code, message: error.message }, owner: owner ?? null };
}

function keyLines(text: string, key: ParsedKey): string[] {
  const rows: (readonly [string, string])[] = [["head", printable(key.head)]];
  const { parts } = key;
  if (parts !== undefined)
    rows.push(
      ["cache prefix", shown(parts.cachePrefix)],
      ["model", printable(parts.modelName)],
      ["namespace", shown(parts.storeNamespace)],
    );
  rows.push(
    ["config", key.configFingerprint ?? "none"],
    ["tp rank", String(key.tpRank)],
    ["pcp rank", String(key.pcpRank)],
    ["dcp rank", String(key.dcpRank)],
    ["pp rank", String(key.ppRank)],
    ["group", key.groupId === undefined ? "none (a key of an early release)" : String(key.groupId)],
    ["hash", key.chunkHash],
  );
  const lines = [printable(text), ...table(rows).map((line) => `  ${line}`)];
  if (parts === undefined)
    lines.push(
      `  the head is ambiguous: it can be read in ${key.candidates.length} ways; --model-name decides`,
      ...table(key.candidates.map(candidateRow)).map((line) => `    ${line}`),
    );
  return lines;
}

function candidateRow(head: KeyHead): string[] {
  return [
    `cache prefix ${shown(head.cachePrefix)}`,
    `model ${printable(head.modelName)}`,
    `namespace ${shown(head.storeNamespace)}`,
  ];
}

function shown(text: string): string {
  return text === "" ? "none" : printable(text);
}

function keyJson(key: string, parsed: ParsedKey): Record<string, unknown> {
  const { parts } = parsed;
  return {
    key,
    head: parsed.head,
    ambiguous: parts === undefined,
    ...headJson(parts),
    config_fingerprint: parsed.configFingerprint ?? null,
    tp_rank: parsed.tpRank,
    pcp_rank: parsed.pcpRank,
    dcp_rank: parsed.dcpRank,
    pp_rank: parsed.ppRank,
    group_id: parsed.groupId ?? null,
    chunk_hash: parsed.chunkHash,
    candidates: parsed.candidates.map(headJson),
  };
}

function headJson(head: KeyHead | undefined): Record<string, string | null> {
  return {
    cache_prefix: head?.cachePrefix ?? null,
    model_name: head?.modelName ?? null,
    store_namespace: head?.storeNamespace ?? null,
  };
}
