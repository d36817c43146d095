import type { HashAlgorithm } from "../../hash/index.js";
import { UsageError } from "../usage-error.js";

/** `--none-hash` and what it must fit. */
export interface NoneHashOptions {
  readonly algorithm: HashAlgorithm;
  readonly noneHash?: Uint8Array | undefined;
}

/** Checks that a root has as many bytes as one of the algorithm. @throws UsageError. */
export function checkNoneHash({ noneHash, algorithm }: NoneHashOptions): void {
  const lengths = algorithm.startsWith("sha256") ? [32] : [16, 32];
  if (noneHash !== undefined && !lengths.includes(noneHash.length))
    throw new UsageError(
      `--none-hash has ${noneHash.length} bytes; the root of ${algorithm} has ${lengths.join(" or ")}: ` +
        `${lengths.map((length) => 2 * length).join(" or ")} hex digits`,
      { bytes: noneHash.length, algorithm },
    );
}
