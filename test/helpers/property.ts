import fc from "fast-check";

/** The seed of every property run: fixed in CI, overridable, printed by the runner. */
export const seed: number = Number(process.env["FAST_CHECK_SEED"] ?? 20261129);

/** How often each law is tried. */
export const runs: number = Number(process.env["FAST_CHECK_RUNS"] ?? 1000);

/** Checks a property with the project's seed and number of runs. Slow laws may ask for fewer runs. */
export function check<Ts>(property: fc.IProperty<Ts>, parameters: fc.Parameters<Ts> = {}): void {
  fc.assert(property, { seed, numRuns: runs, ...parameters });
}

/** `check` for properties whose body awaits. */
export async function checkAsync<Ts>(
  property: fc.IAsyncProperty<Ts>,
  parameters: fc.Parameters<Ts> = {},
): Promise<void> {
  await fc.assert(property, { seed, numRuns: runs, ...parameters });
}
