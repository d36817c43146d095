import { type Outcome, runProcess } from "./process.js";

/** What one stage of the tests counted. */
export interface StageResult {
  readonly name: string;
  readonly passed: number;
  readonly failed: number;
  /** What to show when something failed. */
  readonly output: string;
  readonly seconds: number;
}

/** One command of the test run. */
export interface Stage {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly timeoutMs: number;
  /** Counts from the output; a command without counts is one test. */
  readonly counts?: (output: string) => { readonly passed: number; readonly failed: number };
}

/** Runs a stage. A command that fails, dies or hangs is at least one failure, whatever it printed. */
export async function runStage(stage: Stage): Promise<StageResult> {
  const started = Date.now();
  const outcome = await runProcess(stage.command, stage.args, stage.timeoutMs);
  const counted = stage.counts?.(outcome.output);
  const good = outcome.code === 0 && (counted === undefined || counted.failed === 0);
  return {
    name: stage.name,
    passed: counted?.passed ?? (good ? 1 : 0),
    failed: good ? 0 : Math.max(1, counted?.failed ?? 1),
    output: `${outcome.output}${ending(outcome, stage)}`,
    seconds: (Date.now() - started) / 1000,
  };
}

function ending(outcome: Outcome, stage: Stage): string {
  if (outcome.timedOut) return `\n${stage.name}: no end after ${stage.timeoutMs / 1000} s, killed`;
  if (stage.counts === uvuCounts && !/FAIL/.test(outcome.output) && uvuCounts(outcome.output).failed > 0)
    return `\n${stage.name}: uvu stopped without a word; a test threw an error that uvu can't print, run the file alone`;
  if (outcome.signal) return `\n${stage.name}: died of ${outcome.signal}`;
  return outcome.code === 0 ? "" : `\n${stage.name}: exit code ${outcome.code}`;
}

/** Reads uvu's summary. A file that ran no test, or skipped one, has failed. */
export function uvuCounts(output: string): { readonly passed: number; readonly failed: number } {
  const numberAfter = (label: string) => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: uvu colours its summary.
    const plain = output.replace(/\u001b\[[0-9;]*m/g, "");
    const found = [...plain.matchAll(new RegExp(`^\\s*${label}:\\s+(\\d+)`, "gm"))];
    return found.reduce((sum, match) => sum + Number(match[1]), 0);
  };
  const [total, passed, skipped] = [numberAfter("Total"), numberAfter("Passed"), numberAfter("Skipped")];
  return { passed, failed: total === 0 ? 1 : total - passed + skipped };
}

/** Reads the last `N passed, N failed` line. */
export function closingCounts(output: string): { readonly passed: number; readonly failed: number } {
  const last = [...output.matchAll(/(\d+) passed, (\d+) failed/g)].at(-1);
  return last ? { passed: Number(last[1]), failed: Number(last[2]) } : { passed: 0, failed: 1 };
}
