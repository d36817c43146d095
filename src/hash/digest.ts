import { sha256 } from "#platform";
import { type HashAlgorithm, isCryptographic } from "./algorithm.js";
import { type Digest, loadXxh3 } from "./xxh3.js";

export { sha256 } from "#platform";
export type { Digest } from "./xxh3.js";

/** The digest of an algorithm. Asynchronous because XXH3 is WebAssembly, which must be compiled first. */
export async function loadDigest(algorithm: HashAlgorithm): Promise<Digest> {
  return isCryptographic(algorithm) ? sha256 : loadXxh3();
}
