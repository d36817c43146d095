import { describe } from "../errors.js";
import { hashError } from "./hash-error.js";

/** vLLM's values of `--prefix-caching-hash-algo`. */
export const HASH_ALGORITHMS = ["sha256", "sha256_cbor", "xxhash", "xxhash_cbor"] as const;

/** A block hash algorithm: how a block is serialised (pickle, or CBOR where the name says so) and then digested. */
export type HashAlgorithm = (typeof HASH_ALGORITHMS)[number];

/** How a block is serialised before it is digested. */
export type BlockFormat = "pickle" | "cbor";

/** vLLM's own default. */
export const DEFAULT_HASH_ALGORITHM: HashAlgorithm = "sha256";

/**
 * The algorithm of that name. Mirrors vLLM's `get_hash_fn_by_name`.
 *
 * @throws MooncakeKvError `ERR_HASH` for any other name; there is no fallback, since a wrong algorithm hits nothing.
 */
export function parseHashAlgorithm(name: string): HashAlgorithm {
  const found = HASH_ALGORITHMS.find((algorithm) => algorithm === name);
  if (found === undefined)
    throw hashError(
      `unsupported hash algorithm ${describe(name)}; vLLM knows ${HASH_ALGORITHMS.join(", ")}`,
      { name, supported: HASH_ALGORITHMS },
    );
  return found;
}

/** The serialisation that an algorithm uses. */
export function blockFormat(algorithm: HashAlgorithm): BlockFormat {
  return algorithm.endsWith("_cbor") ? "cbor" : "pickle";
}

/** Whether collisions can't be made on purpose. Only such an algorithm has a root that is the same everywhere. */
export function isCryptographic(algorithm: HashAlgorithm): boolean {
  return algorithm.startsWith("sha256");
}

/** Bytes of one block hash: 32 or 16. */
export function hashLength(algorithm: HashAlgorithm): number {
  return isCryptographic(algorithm) ? 32 : 16;
}
