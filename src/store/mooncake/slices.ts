/** Keys of one command at most: each is a transfer, and Mooncake queues 1,024 of them by default. */
export const KEYS_A_COMMAND = 1_000;

/** Rows that cross in one command, and their bytes. */
export interface Slice {
  readonly rows: readonly number[];
  /** Bytes of all rows. */
  readonly bytes: number;
}

/** Cuts rows into slices of at most `mostBytes` (a larger row is a slice of its own) and `KEYS_A_COMMAND` rows. */
export function sliceRows(
  rows: readonly number[],
  bytesOfRow: (row: number) => number,
  mostBytes: number,
): Slice[] {
  const slices: Slice[] = [];
  let current: number[] = [];
  let bytes = 0;
  const cut = (): void => {
    if (current.length > 0) slices.push({ rows: current, bytes });
    current = [];
    bytes = 0;
  };
  for (const row of rows) {
    const size = bytesOfRow(row);
    if (current.length >= KEYS_A_COMMAND || bytes + size > mostBytes) cut();
    current.push(row);
    bytes += size;
  }
  cut();
  return slices;
}
