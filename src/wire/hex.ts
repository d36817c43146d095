import * as platform from "#platform";

// Functions of their own rather than a re-export: declarations that name the package's import map can't be copied elsewhere.

/** Lower-case hex of bytes. */
export function toHex(bytes: Uint8Array): string {
  return platform.toHex(bytes);
}

/** The bytes that hex stands for, in memory of their own. What is no hex ends the result. */
export function fromHex(text: string): Uint8Array {
  return platform.fromHex(text);
}
