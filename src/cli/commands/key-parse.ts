import type { Command } from "commander";
import { isMooncakeKvError } from "../../errors.js";
import { type KeyHead, type ParsedKey, parseKey } from "../../key/index.js";
import type { CommandContext } from "../command.js";
import { readKeys } from "../input/keys.js";
import { readInputLines } from "../input/read-input.js";
import { jsonText } from "../json.js";
import { foreignKey } from "../key/foreign-key.js";
import { addFileOption, addJsonOption, type FileOption, type JsonOption } from "../options.js";
import { reportedError } from "../report-error.js";
import { count, printable, table } from "../text.js";
import { UsageError } from "../usage-error.js";

interface KeyParseOptions extends JsonOption, FileOption {
  readonly modelName?: string | undefined;
}

const HELP = `
Keys: as arguments, or one a line in a file or on stdin; also what mooncake-kv key build --json prints.

A key is read from the right: hash, group, ranks, configuration fingerprint. What is left, the head, holds cache
prefix, model and store namespace. Prefix and model may contain @, so that a head can have several readings; all are
listed. With --model-name the head has one.

A key that can't be read is told, with the program whose key it is where its form says so (vllm-ascend, LMCache, SGLang),
and the rest goes on.

Exit status: 0 when every key could be read, 1 when one could not, 2 when the input can't be read.`;

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
  const { modelName } = options;
  if (modelName === "") throw new UsageError("--model-name is empty; leave it out where it is not known");
  const input = readInputLines(context, { args, file: options.file, what: "keys" });
  const { stdout, stderr } = context;
  let [total, refused] = [0, 0];
  const separator = options.json ? "," : "\n";
  try {
    for await (const { number, key } of readKeys(input.lines, input.source)) {
      const read = readKey(key, number, modelName);
      if ("error" in read) refused++;
      await stdout.write(total++ === 0 ? (options.json ? "[" : "") : separator);
      if (options.json) await stdout.write(jsonText("error" in read ? read : keyJson(key!, read)));
      else await stdout.lines("error" in read ? refusedLines(read) : keyLines(key!, read));
    }
  } catch (error) {
    // What was printed stands, so that it must stay JSON.
    if (!options.json || total === 0) throw error;
    const { code, message, exitCode } = reportedError(error);
    await stdout.line(`,${jsonText({ error: { code, message } })}]`);
    context.exitCode = exitCode;
    return;
  }
  if (options.json) await stdout.line("]");
  if (refused === 0) return;
  context.exitCode = 1;
  if (!options.json)
    await stderr.line(
      `mooncake-kv: ${refused} of ${count(total, "key")} ${refused === 1 ? "is" : "are"} not of vLLM's MooncakeStoreConnector`,
    );
}

/** A key that can't be read. */
interface RefusedKey {
  readonly key: string | null;
  /** Its line, or its place in a JSON list, from 1. */
  readonly line: number;
  readonly error: { readonly code: string; readonly message: string };
  /** The program whose key it is, where its form tells. */
  readonly owner: string | null;
}

function readKey(
  key: string | undefined,
  line: number,
  modelName: string | undefined,
): ParsedKey | RefusedKey {
  const refused = (message: string, owner: string | null = null): RefusedKey => ({
    ...{ key: key ?? null, line },
    error: { code: "ERR_KEY", message },
    owner,
  });
  if (key === undefined) return refused("the line is not UTF-8 text");
  try {
    return parseKey(key, modelName === undefined ? {} : { modelName });
  } catch (error) {
    if (!isMooncakeKvError(error, "ERR_KEY")) throw error;
    const foreign = foreignKey(key);
    if (foreign === undefined) return refused(error.message);
    return refused(`a key of ${foreign.owner}: ${foreign.form}`, foreign.owner);
  }
}

function refusedLines({ key, line, error }: RefusedKey): string[] {
  return [key === null ? `line ${line}` : printable(key), `  line ${line}: ${printable(error.message)}`];
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
