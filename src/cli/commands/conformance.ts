import { access, constants, stat } from "node:fs/promises";
import type { Command } from "commander";
import { type ContractReport, parseScenario } from "../../conformance/contract/index.js";
import { vectorHandlers } from "../../conformance/vectors/index.js";
import { type FileReport, runVectorLines } from "../../conformance/vectors/runner.js";
import { describe } from "../../errors.js";
import type { CommandContext } from "../command.js";
import { checkContractStore, runContract } from "../conformance/run-contract.js";
import { MAX_KEPT_LINES, MAX_LINE_BYTES, tooManyLines } from "../input/limits.js";
import type { Line } from "../input/lines.js";
import { readFileLines, unreadable } from "../input/read-input.js";
import { jsonText } from "../json.js";
import { addJsonOption, type JsonOption } from "../options.js";
import { Progress } from "../progress.js";
import { printable, table } from "../text.js";

const HELP = `
Files have one JSON object a line: id, source, op, input, expected or error, and same_in. Each line is checked for
the release of its source and for every release in same_in. An op that is not known counts as failed.

A file of store scenarios (id, setup, steps) is replayed against the store of --store, a fresh one for each scenario.
Stores: embedded:, mooncake: (a real master and real processes, from the wheel of MOONCAKE_KV_PYTHON or python3), and
mooncake-native: or mooncake-native:/path/lib.so (the library of MOONCAKE_STORE_LIBRARY or of the path; its cluster has
to live in this process, as that of this package's own libmooncake_store.so does).
Scenarios that this store can't run, because they need another kind of backend, are listed with the reason.

Files are read line by line: up to ${MAX_KEPT_LINES} lines, of up to ${MAX_LINE_BYTES >> 20} MiB each.

Exit status: 0 when every line of every file passed, 1 when one failed or a file has no line, 2 when a file can't be
read.`;

interface ConformanceOptions extends JsonOption {
  readonly store: string;
}

/** `mooncake-kv conformance` */
export function define(command: Command, context: CommandContext): void {
  command.argument("<files...>", "golden vector files (.jsonl)");
  command.option("--store <uri>", "store that scenarios run against", "embedded:");
  addJsonOption(command)
    .addHelpText("after", HELP)
    .action((files: readonly string[], options: ConformanceOptions) => run(files, options, context));
}

async function run(
  files: readonly string[],
  options: ConformanceOptions,
  context: CommandContext,
): Promise<void> {
  checkContractStore(options.store);
  for (const file of files) await checkReadable(file);
  const progress = new Progress(context, options.json);
  const reports: FileReport[] = [];
  try {
    for (const [index, file] of files.entries()) {
      const name = files.length === 1 ? file : `${file} (${index + 1} of ${files.length})`;
      const lines = () => counted(readFileLines(file), progress, name);
      const report = (await holdsScenarios(file))
        ? await runContract(file, lines(), options.store, context.io.env)
        : await runVectorLines(file, lines(), vectorHandlers);
      reports.push(report);
    }
  } finally {
    await progress.end();
  }
  if (reports.some(({ total, failed }) => failed > 0 || total === 0)) context.exitCode = 1;
  if (options.json) {
    const shown = reports.map(({ file, total, passed, failed, deviations, failures }) => {
      return { file, total, passed, failed, deviations, failures: failures.map(failureJson) };
    });
    await context.stdout.line(jsonText({ files: shown }));
  } else await context.stdout.lines(reportLines(reports));
}

/** Finds out before the first file is run that a later one can't be read. */
async function checkReadable(path: string): Promise<void> {
  try {
    await access(path, constants.R_OK);
    if ((await stat(path)).isDirectory()) throw Object.assign(new Error("is a folder"), { code: "EISDIR" });
  } catch (error) {
    unreadable(path, error as NodeJS.ErrnoException);
  }
}

/** The scenarios of a contract file that this backend can't run. */
function skipsOf(report: FileReport): ContractReport["otherBackendOnly"] {
  return "otherBackendOnly" in report ? (report as ContractReport).otherBackendOnly : [];
}

/** Whether the first line of a file is a scenario of a store, so that the file is not for the vector runner. */
async function holdsScenarios(file: string): Promise<boolean> {
  for await (const { text } of readFileLines(file))
    if (text?.trim() !== "") return text !== undefined && parseScenario(text) !== undefined;
  return false;
}

/** The texts of lines; what is not UTF-8 becomes a line that no runner can read. Each is shown as it begins. */
async function* counted(
  lines: AsyncIterable<Line>,
  progress: Progress,
  file: string,
): AsyncGenerator<string> {
  for await (const { number, text } of lines) {
    if (number > MAX_KEPT_LINES) throw tooManyLines(JSON.stringify(file));
    await progress.show(`${file}: line ${number}`);
    yield text ?? "(not UTF-8 text)";
  }
}

function failureJson({
  id,
  path,
  expected,
  actual,
}: FileReport["failures"][number]): Record<string, unknown> {
  return { id, path, expected, actual };
}

function reportLines(reports: readonly FileReport[]): string[] {
  const rows: (string | number)[][] = [["file", "op", "total", "passed", "failed"]];
  for (const report of reports) {
    const ops = Object.entries(report.ops).sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [op, counts] of ops) rows.push([report.file, op, counts.total, counts.passed, counts.failed]);
    if (ops.length !== 1) rows.push([report.file, "all", report.total, report.passed, report.failed]);
  }
  const lines = table(rows);
  for (const report of reports) {
    if (report.total === 0) lines.push(`${report.file}: no vector in this file`);
    for (const { id, reason } of skipsOf(report))
      lines.push(`${report.file}: not run here: ${id}: ${reason}`);
    for (const [name, number] of Object.entries(report.deviations))
      lines.push(`${report.file}: deviation ${name}: ${number}`);
  }
  for (const report of reports)
    for (const { id, path, expected, actual } of report.failures)
      lines.push(`failed ${id}: ${path}: expected ${describe(expected, 160)}, got ${describe(actual, 240)}`);
  const total = sum(reports, "total");
  lines.push(`${sum(reports, "passed")} of ${total} passed, ${sum(reports, "failed")} failed`);
  return lines.map(printable);
}

function sum(reports: readonly FileReport[], field: "total" | "passed" | "failed"): number {
  return reports.reduce((all, report) => all + report[field], 0);
}
