import type { Command } from "commander";
import { type KeyHead, type ParsedKey, parseKey } from "../../key/index.js";
import type { CommandContext } from "../command.js";
import { readKeys } from "../input/keys.js";
import { readInput } from "../input/read-input.js";
import { jsonText } from "../json.js";
import { addFileOption, addJsonOption, type FileOption, type JsonOption } from "../options.js";
import { printable, table } from "../text.js";

interface KeyParseOptions extends JsonOption, FileOption {
  readonly modelName?: string | undefined;
}

const HELP = `
Keys: as arguments, or one a line in a file or on stdin; also what mooncake-kv key build --json prints.

A key is read from the right: hash, group, ranks, configuration fingerprint. What is left, the head, holds cache
prefix, model and store namespace. Prefix and model may contain @, so that a head can have several readings; all are
listed. With --model-name the head has one.`;

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
  const parsed = keys.map((key) => parseKey(key, modelName === undefined ? {} : { modelName }));
  if (options.json) {
    await context.stdout.line(jsonText(parsed.map((key, index) => keyJson(keys[index]!, key))));
    return;
  }
  for (const [index, key] of parsed.entries()) {
    if (index > 0) await context.stdout.line();
    await context.stdout.lines(keyLines(keys[index]!, key));
  }
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
