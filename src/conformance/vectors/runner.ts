import { type Checks, checksFor } from "../../checks/checks-for.js";
import { describe, isMooncakeKvError } from "../../errors.js";
import { linesOf } from "../lines.js";
import { type Difference, firstDifference } from "./compare.js";
import { Deviation } from "./deviation.js";
import type { JsonObject, JsonValue, VectorHandlers } from "./handler.js";
import { mayBeRefused, releaseOfSource } from "./sources.js";

/** One failed line of a vector file. */
export interface VectorFailure extends Difference {
  readonly id: string;
}

/** Counts of one op of a file. `total` is all of its lines but those that were skipped. */
export interface OpReport {
  total: number;
  passed: number;
  failed: number;
  /** Lines of ops that `only` does not name. */
  skipped: number;
}

/** How a file is run. */
export interface VectorOptions {
  /**
   * The ops to run; lines of others are skipped and counted. For an implementation that has not all of them. Default: all,
   * where an op without a handler fails.
   */
  readonly only?: readonly string[] | undefined;
}

/** What became of one vector file. */
export interface FileReport extends OpReport {
  readonly file: string;
  readonly ops: Record<string, OpReport>;
  /** How many records showed each deliberate deviation from vLLM. */
  readonly deviations: Record<string, number>;
  readonly failures: VectorFailure[];
}

interface VectorLine {
  readonly id: string;
  readonly source: string;
  readonly op: string;
  readonly input: JsonObject;
  readonly expected?: JsonValue | undefined;
  readonly error?: JsonValue | undefined;
  readonly same_in?: readonly string[] | undefined;
}

/**
 * Runs a golden vector file against handlers: each line for its source and for every release in its `same_in`. A line
 * with an unknown op, an unknown source or unreadable JSON counts as failed. Lines are read one at a time.
 *
 * @example
 * ```ts
 * import { runVectorFile, vectorHandlers } from "mooncake-kv/conformance";
 *
 * const { passed, failed, failures } = await runVectorFile("test/vectors/keys.jsonl", vectorHandlers);
 * console.log(passed, failed, failures[0]);
 * ```
 *
 * @throws MooncakeKvError `ERR_CONFIG` for options that are none, for an op in `only` that has no handler, and for one of
 * which the file has no line: most are misspelt.
 */
export async function runVectorFile(
  path: string,
  handlers: VectorHandlers,
  options: VectorOptions = {},
): Promise<FileReport> {
  return runVectorLines(path, linesOf(path), handlers, options);
}

/** `runVectorFile` for lines that come from elsewhere. @throws MooncakeKvError `ERR_CONFIG` as `runVectorFile`. */
export async function runVectorLines(
  file: string,
  lines: AsyncIterable<string> | Iterable<string>,
  handlers: VectorHandlers,
  options: VectorOptions = {},
): Promise<FileReport> {
  const only = checkedOnly(options, handlers);
  const report: FileReport = { file, ...noLines(), ops: {}, deviations: {}, failures: [] };
  let number = 0;
  for await (const text of lines) {
    number++;
    if (text.trim() === "") continue;
    const line = parseLine(text);
    const op = typeof line === "string" ? "(unreadable)" : line.op;
    report.ops[op] ??= noLines();
    if (only !== undefined && typeof line !== "string" && !only.has(op)) {
      for (const counts of [report, report.ops[op]]) counts.skipped++;
      continue;
    }
    const failure =
      typeof line === "string"
        ? { id: `line ${number}`, path: "$", expected: "a vector", actual: line }
        : await runLine(line, text, handlers, report.deviations);
    for (const counts of [report, report.ops[op]]) {
      counts.total++;
      counts[failure ? "failed" : "passed"]++;
    }
    if (failure) report.failures.push(failure);
  }
  const unseen = [...(only ?? [])].find((op) => !Object.hasOwn(report.ops, op));
  if (unseen !== undefined)
    throw checks.error(
      `${file} has no line of the op ${describe(unseen)}; its ops are ${Object.keys(report.ops).sort().join(", ")}`,
      { file, op: unseen },
    );
  return report;
}

const checks: Checks = checksFor("ERR_CONFIG");

const noLines = (): OpReport => ({ total: 0, passed: 0, failed: 0, skipped: 0 });

function checkedOnly(options: VectorOptions, handlers: VectorHandlers): ReadonlySet<string> | undefined {
  const { only } = checks.names("a run of vectors", options, { only: 1 });
  if (only === undefined) return undefined;
  if (!Array.isArray(only) || only.length === 0)
    throw checks.error(`only is ${describe(only)}; it is a list of ops, with one at least`, { only });
  for (const op of only as readonly string[])
    if (!Object.hasOwn(handlers, op))
      throw checks.error(
        `there is no handler for the op ${describe(op)}; there are ${Object.keys(handlers).sort().join(", ")}`,
        { op },
      );
  return new Set(only as readonly string[]);
}

function parseLine(text: string): VectorLine | string {
  try {
    const line = JSON.parse(text) as Partial<VectorLine>;
    const complete =
      typeof line.id === "string" &&
      typeof line.source === "string" &&
      typeof line.op === "string" &&
      typeof line.input === "object" &&
      line.input !== null &&
      (line.same_in === undefined || Array.isArray(line.same_in)) &&
      (line.expected !== undefined || line.error !== undefined);
    return complete ? (line as VectorLine) : "a line without id, source, op, input and expected or error";
  } catch (error) {
    return (error as Error).message;
  }
}

async function runLine(
  line: VectorLine,
  text: string,
  handlers: VectorHandlers,
  deviations: Record<string, number>,
): Promise<VectorFailure | undefined> {
  const handler = Object.hasOwn(handlers, line.op) ? handlers[line.op] : undefined;
  if (handler === undefined)
    return { id: line.id, path: "$.op", expected: "an op of this implementation", actual: line.op };
  const recorded = {
    ...(line.expected !== undefined && { expected: line.expected }),
    ...(line.error !== undefined && { error: line.error }),
  };
  const shown = new Set<string>();
  for (const source of [line.source, ...(line.same_in ?? [])]) {
    const release = releaseOfSource(source);
    if (release === undefined)
      return { id: line.id, path: "$.source", expected: "a known source", actual: source };
    const difference = await attempt(line, shown, async () =>
      handler(line.input, { release, id: line.id, text, recorded }),
    );
    if (difference) return { id: line.id, ...difference, path: `${difference.path} (${release})` };
  }
  for (const name of shown) deviations[name] = (deviations[name] ?? 0) + 1;
  return undefined;
}

/**
 * Runs a handler and compares its outcome, be it a value or an error, with the line; or, where it reports a known
 * defect of vLLM, with what would be right. `shown` collects the names of these.
 */
async function attempt(
  line: VectorLine,
  shown: Set<string>,
  run: () => Promise<JsonValue | Deviation>,
): Promise<Difference | undefined> {
  try {
    const actual = await run();
    if (actual instanceof Deviation) {
      shown.add(actual.name);
      return firstDifference(actual.right, actual.actual);
    }
    if (line.expected !== undefined) return firstDifference(line.expected, actual);
    return { path: "$", expected: { error: line.error ?? null }, actual };
  } catch (error) {
    const ours = isMooncakeKvError(error);
    if (ours && (line.error !== undefined || mayBeRefused(line.id))) return undefined;
    const message = ours ? `${error.code}: ${error.message}` : String((error as Error)?.stack ?? error);
    return { path: "$", expected: line.expected ?? { error: line.error ?? null }, actual: message };
  }
}
