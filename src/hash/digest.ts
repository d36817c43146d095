import { hash } from "node:crypto";
import { type HashAlgorithm, isCryptographic } from "./algorithm.js";
import { loadXxh3 } from "./xxh3.js";

/** Digests serialised bytes: SHA-256, or XXH3-128 in its canonical big-endian form. */
export type Digest = (bytes: Uint8Array) => Uint8Array;

/** SHA-256, 32 bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  return hash("sha256", bytes, "buffer");
}

/** The digest of an algorithm. Asynchronous because XXH3 is WebAssembly, which must be compiled first. */
export async function loadDigest(algorithm: HashAlgorithm): Promise<Digest> {
  return isCryptographic(algorithm) ? sha256 : loadXxh3();
}
