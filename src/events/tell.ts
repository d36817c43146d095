/** Tells a listener of the user's something. One that throws or rejects must not cost anybody else anything. */
export function tell<Value>(listener: ((value: Value) => unknown) | undefined, value: Value): void {
  if (listener === undefined) return;
  const told = async (): Promise<unknown> => listener(value);
  told().catch(() => {});
}

/** The lengths of frames, for a message about frames that make no sense. There may be any number of them. */
export function frameSizes(frames: readonly Uint8Array[]): string {
  const most = 8;
  const sizes = frames.slice(0, most).map(({ length }) => length);
  return `${frames.length} frames (${sizes.join(", ")}${frames.length > most ? ", ..." : ""} bytes)`;
}
