/**
 * What the pure rooms need of where they run, as Node, Bun and Deno have it. The package's import `#platform` is this
 * file under the condition `node`, and `web.ts` elsewhere, so that a bundle for a browser has no module of Node in it.
 */
import type * as Crypto from "node:crypto";

const ENCODER = new TextEncoder();

/** Loaded by the first digest: it takes longer than all of the core. */
let loaded: typeof Crypto | undefined;

function crypto(): typeof Crypto {
  loaded ??= process.getBuiltinModule("node:crypto");
  return loaded;
}

/** SHA-256, 32 bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  return plain(crypto().hash("sha256", bytes, "buffer"));
}

/** Bytes that nobody can foretell. */
export function randomBytes(count: number): Uint8Array {
  return plain(crypto().randomBytes(count));
}

/** Lower-case hex of bytes. */
export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}

/** The bytes that hex stands for, in memory of their own. What is no hex ends the result. */
export function fromHex(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, "hex"));
}

/** A text as UTF-8, in memory of its own; a lone surrogate becomes U+FFFD. */
export function utf8(text: string): Uint8Array {
  return ENCODER.encode(text);
}

/** Lets everything else that waits run first. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The same memory without the class `Buffer`, which compares and prints unlike other byte arrays. */
function plain(buffer: Buffer): Uint8Array {
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}
