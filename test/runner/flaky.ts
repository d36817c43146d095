import type { StageResult } from "./stage.js";

/** How many files may need a second try in one run. */
const MOST_FLAKY = 2;

/** What is said of the files that passed only at their second try, and how many of them are failures. */
export function flakyVerdict(flaky: readonly StageResult[]): {
  readonly lines: readonly string[];
  readonly failed: number;
} {
  const failed = flaky.length > MOST_FLAKY ? flaky.length : 0;
  const lines = flaky.map(({ name }) => `flaky ${name}: it passed at its second try only`);
  if (failed > 0) lines.push(`${flaky.length} files are flaky; more than ${MOST_FLAKY} are failures`);
  return { lines, failed };
}
