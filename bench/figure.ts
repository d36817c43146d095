/** Prints a figure as one JSON line. */
export function report(name: string, value: number, unit: string, more: Record<string, unknown> = {}): void {
  console.log(JSON.stringify({ name, value: Number(value.toPrecision(4)), unit, ...more }));
}

/** Numbers that look random and are the same in each run. */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state;
  };
}
