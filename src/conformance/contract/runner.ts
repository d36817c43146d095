import { describe, isMooncakeKvError } from "../../errors.js";
import { linesOf } from "../lines.js";
import { type Difference, firstDifference } from "../vectors/compare.js";
import type { JsonObject, JsonValue } from "../vectors/handler.js";
import type { FileReport, VectorFailure } from "../vectors/runner.js";
import { expectedOf, recordedResults, refused } from "./expectation.js";
import { Ledger } from "./ledger.js";
import { OtherBackendOnly } from "./member.js";
import type { Observed } from "./observed.js";
import { type ContractScenario, type ContractStep, clientOf, parseScenario } from "./scenario.js";
import { StepRunner } from "./steps.js";
import type { ContractBackend } from "./world.js";

/** A scenario, or a step of one, that was not run. */
export interface ContractSkip {
  /** The scenario; with `.steps[i]` behind it where the rest of it was run. */
  readonly id: string;
  /** Why this backend can't run it. */
  readonly reason: string;
}

/**
 * What became of a contract file. `total` counts all scenarios, `passed` and `failed` those that were run, and `ops` the
 * steps that were compared; the rest is in `otherBackendOnly`.
 */
export interface ContractReport extends FileReport {
  readonly otherBackendOnly: ContractSkip[];
}

/** What became of one scenario. */
export interface ScenarioOutcome {
  readonly failure: VectorFailure | undefined;
  /** The op of each step that was compared, and whether it agreed. */
  readonly steps: readonly (readonly [op: string, passed: boolean])[];
  readonly improvements: readonly string[];
  readonly skipped: readonly ContractSkip[];
}

/** Replays every scenario of a file in the published format against a backend, one after another. */
export async function runContractFile(path: string, backend: ContractBackend): Promise<ContractReport> {
  const lines = linesOf(path);
  return runContractLines(path, lines, backend);
}

/** Whether the first line of a file is a scenario, so that the file is for `runContractFile` and not for the vector runner. */
export async function isContractFile(path: string): Promise<boolean> {
  for await (const line of linesOf(path)) if (line.trim() !== "") return parseScenario(line) !== undefined;
  return false;
}

/** `runContractFile` for lines that come from elsewhere. */
export async function runContractLines(
  file: string,
  lines: AsyncIterable<string> | Iterable<string>,
  backend: ContractBackend,
): Promise<ContractReport> {
  const report: ContractReport = {
    file,
    total: 0,
    passed: 0,
    failed: 0,
    skipped: 0,
    ops: {},
    deviations: {},
    failures: [],
    otherBackendOnly: [],
  };
  let number = 0;
  for await (const text of lines) {
    number++;
    if (text.trim() === "") continue;
    report.total++;
    const scenario = parseScenario(text);
    if (!scenario) {
      report.failed++;
      report.failures.push({
        id: `line ${number}`,
        path: "$",
        expected: "a scenario",
        actual: describe(text),
      });
      continue;
    }
    const reason = backend.unsupported(scenario);
    if (reason !== undefined) {
      report.otherBackendOnly.push({ id: scenario.id, reason });
      continue;
    }
    add(report, await runScenario(scenario, backend));
  }
  return report;
}

function add(report: ContractReport, outcome: ScenarioOutcome): void {
  if (outcome.failure) report.failures.push(outcome.failure);
  report[outcome.failure ? "failed" : "passed"]++;
  report.otherBackendOnly.push(...outcome.skipped);
  for (const [op, passed] of outcome.steps) {
    report.ops[op] ??= { total: 0, passed: 0, failed: 0, skipped: 0 };
    report.ops[op].total++;
    report.ops[op][passed ? "passed" : "failed"]++;
  }
  for (const name of outcome.improvements) report.deviations[name] = (report.deviations[name] ?? 0) + 1;
}

/** Replays one scenario in a world of its own, up to the first difference. */
export async function runScenario(
  scenario: ContractScenario,
  backend: ContractBackend,
): Promise<ScenarioOutcome> {
  const replay = new Replay(scenario);
  try {
    await using world = await backend.open(scenario.setup);
    const runner = new StepRunner(world, scenario.setup);
    try {
      await replay.run(runner);
    } finally {
      await runner.settle();
    }
  } catch (error) {
    replay.fail({ path: "$", expected: "a world to run in", actual: errorText(error) });
  }
  return replay;
}

/** One run of a scenario. */
class Replay implements ScenarioOutcome {
  failure: VectorFailure | undefined;
  readonly steps: (readonly [op: string, passed: boolean])[] = [];
  readonly improvements: string[] = [];
  readonly skipped: ContractSkip[] = [];
  readonly #scenario: ContractScenario;
  readonly #ledger: Ledger;
  /** Clients whose recorded process is dead. */
  readonly #crashed = new Set<string>();

  constructor(scenario: ContractScenario) {
    this.#scenario = scenario;
    this.#ledger = new Ledger(scenario.setup.leaseTtlMs);
  }

  fail(difference: Difference): void {
    this.failure ??= { id: this.#scenario.id, ...difference };
  }

  async run(runner: StepRunner): Promise<void> {
    for (const [index, step] of this.#scenario.steps.entries()) {
      const path = `$.steps[${index}]`;
      try {
        if (step.op === "parallel") await this.#parallel(runner, step, path);
        else this.#judge(step, await runner.run(step), path, runner.slept);
      } catch (error) {
        if (error instanceof OtherBackendOnly) {
          this.skipped.push({ id: `${this.#scenario.id}.steps[${index}]`, reason: error.message });
          continue;
        }
        this.steps.push([step.op, false]);
        this.fail({ path, expected: recordedResults(step), actual: errorText(error) });
      }
      if (this.failure) return;
    }
  }

  async #parallel(runner: StepRunner, step: ContractStep, path: string): Promise<void> {
    const inner = step["steps"] as readonly ContractStep[];
    const recorded = step["results"] as readonly JsonObject[];
    const observed = await runner.runParallel(inner);
    for (const [i, one] of inner.entries()) {
      const loose = step["info"] === true || step["stable"] === false;
      const whole: ContractStep = { ...one, ...recorded[i], ...(loose && { info: true }) };
      this.#judge(whole, observed[i]!, `${path}.results[${i}]`, runner.slept);
    }
  }

  #judge(step: ContractStep, observed: Observed, path: string, now: number): void {
    if (step.op === "new_client") this.#crashed.delete(clientOf(step));
    const recorded = recordedResults(step);
    if (step["crash"] !== undefined) {
      // After the first crash the recorded process is gone: whatever ours answers, it answers.
      const first = !this.#crashed.has(clientOf(step));
      this.#crashed.add(clientOf(step));
      expectedOf({}, observed, this.#ledger, now);
      this.improvements.push("a crash is a code");
      const passed = !first || refused(observed.result) || step["keys"]?.toString() === "";
      this.steps.push([step.op, passed]);
      if (!passed) this.fail({ path, expected: "a refusal", actual: observed.result });
      return;
    }
    const { results, improvements } = expectedOf(recorded, observed, this.#ledger, now);
    // Marked by the recorders: these depend on time or luck.
    if (step["info"] === true || step["stable"] === false) return;
    this.improvements.push(...improvements);
    const difference = resultDifference(results, observed.result, path);
    if (Object.keys(recorded).length > 0) this.steps.push([step.op, difference === undefined]);
    if (difference) this.fail(difference);
  }
}

/** The first recorded result that differs; what else a step gives does not count. */
function resultDifference(expected: JsonObject, actual: JsonObject, path: string): Difference | undefined {
  const compared: Record<string, JsonValue> = {};
  for (const name of Object.keys(expected)) if (actual[name] !== undefined) compared[name] = actual[name];
  return firstDifference(expected, compared, path);
}

function errorText(error: unknown): string {
  if (isMooncakeKvError(error)) return `${error.code}: ${error.message}`;
  return String((error as Error)?.stack ?? error);
}
