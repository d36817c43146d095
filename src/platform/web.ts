/** What the pure rooms need of where they run, with nothing but what every JavaScript engine has. See `node.ts`. */
import { _SHA256 } from "@noble/hashes/sha2.js";

const ENCODER = new TextEncoder();
const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** SHA-256, 32 bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  // The class behind the library's function, which would bring a good deal more into a bundle.
  return new _SHA256().update(bytes).digest();
}

/** Bytes that nobody can foretell. */
export function randomBytes(count: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(count));
}

/** Lower-case hex of bytes. */
export function toHex(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += HEX[byte];
  return text;
}

/** The bytes that hex stands for, in memory of their own. What is no hex ends the result. */
export function fromHex(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length >> 1);
  for (let index = 0; index < bytes.length; index++) {
    const pair = text.slice(2 * index, 2 * index + 2);
    if (!/^[0-9a-fA-F]{2}$/.test(pair)) return bytes.slice(0, index);
    bytes[index] = Number.parseInt(pair, 16);
  }
  return bytes;
}

/** A text as UTF-8, in memory of its own; a lone surrogate becomes U+FFFD. */
export function utf8(text: string): Uint8Array {
  return ENCODER.encode(text);
}

/** Lets everything else that waits run first. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    const onmessage = () => {
      port1.close();
      resolve();
    };
    Object.assign(port1, { onmessage });
    port2.postMessage(null);
  });
}
