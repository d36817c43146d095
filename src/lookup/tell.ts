/** Tells a listener of the user's something. One that throws or rejects must not cost anybody else anything. */
export function tell<Value>(listener: ((value: Value) => unknown) | undefined, value: Value): void {
  if (listener === undefined) return;
  const told = async (): Promise<unknown> => listener(value);
  told().catch(() => {});
}
