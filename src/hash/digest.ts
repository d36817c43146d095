import * as platform from "#platform";
import { type HashAlgorithm, isCryptographic } from "./algorithm.js";
import { type Digest, loadXxh3 } from "./xxh3.js";

export type { Digest } from "./xxh3.js";

/** SHA-256, 32 bytes. */
export const sha256: Digest = platform.sha256;

/** The digest of an algorithm. Asynchronous because XXH3 is WebAssembly, which must be compiled first. */
export async function loadDigest(algorithm: HashAlgorithm): Promise<Digest> {
  return isCryptographic(algorithm) ? sha256 : loadXxh3();
}
