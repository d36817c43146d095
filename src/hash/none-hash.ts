import { randomBytes, toHex } from "#platform";
import type { MooncakeKvError } from "../errors.js";
import { DEFAULT_RELEASE, type Release } from "../release.js";
import { blockFormat, type HashAlgorithm, isCryptographic } from "./algorithm.js";
import type { BlockHash } from "./blob-block-hashes.js";
import { cborDumps } from "./cbor.js";
import type { Digest } from "./digest.js";
import { hashError } from "./hash-error.js";
import { pickleDumps } from "./pickle.js";

/** The seed that vLLM uses for the sha256 algorithms when PYTHONHASHSEED is not set. */
export const DEFAULT_NONE_HASH_SEED = "vllm-none-hash";

/** Where the root of a hash chain comes from. */
export interface NoneHashSource {
  /** The text that was hashed; undefined when the root is plain random bytes (release vllm-0.27). */
  readonly seed: string | undefined;
  readonly noneHash: BlockHash;
  /** Whether another process computes the same root from the same settings. */
  readonly shareable: boolean;
}

/**
 * The root of every hash chain: the hash of the seed text. Mirrors vLLM's `init_none_hash`.
 *
 * @param seed the engine's PYTHONHASHSEED, exactly as set; undefined where the engine has none.
 */
export function resolveNoneHash(
  algorithm: HashAlgorithm,
  digest: Digest,
  seed: string | undefined,
  release: Release = DEFAULT_RELEASE,
): NoneHashSource {
  const dumps = blockFormat(algorithm) === "cbor" ? cborDumps : pickleDumps;
  if (seed !== undefined) return { seed, noneHash: digest(dumps(seed)), shareable: true };
  if (release === "vllm-0.27") return { seed: undefined, noneHash: randomBytes(32), shareable: false };
  if (isCryptographic(algorithm))
    return { seed: DEFAULT_NONE_HASH_SEED, noneHash: digest(dumps(DEFAULT_NONE_HASH_SEED)), shareable: true };
  const random = toHex(randomBytes(32));
  return { seed: random, noneHash: digest(dumps(random)), shareable: false };
}

/** Why a chain whose root is random can't be used with a shared store, and what to set. */
export function unshareableRoot(algorithm: HashAlgorithm, release: Release): MooncakeKvError {
  const reason =
    release === "vllm-0.27"
      ? `without PYTHONHASHSEED vLLM 0.27 starts ${algorithm} chains from a random root in each process`
      : `${algorithm} is not collision resistant, so without PYTHONHASHSEED vLLM starts its chains from a random root in each process`;
  return hashError(
    `${reason}: keys made here would never be found by an engine. Pass the engine's PYTHONHASHSEED as seed` +
      `${release === "vllm-0.27" ? "" : ", use sha256,"} or set rootSharing to "private" if nothing is shared`,
    { algorithm, release },
  );
}
