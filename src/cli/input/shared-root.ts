import { MooncakeKvError } from "../../errors.js";
import type { BlockHasher } from "../../hash/index.js";

/** The error for a chain whose root is random in every process: the command can't know that of the engine. */
export function unshareableRoot(
  { algorithm, release }: BlockHasher,
  otherwise: string = "",
): MooncakeKvError {
  const remedies =
    release === "vllm-0.27" ? "" : "; or use --algorithm sha256, whose root is the same everywhere";
  return new MooncakeKvError(
    "ERR_HASH",
    `without PYTHONHASHSEED an engine of ${release} starts ${algorithm} chains from a random root, so that nothing ` +
      `hashed here would ever be found: set PYTHONHASHSEED for the engine and pass it as --seed${remedies}${otherwise}`,
    { algorithm, release },
  );
}
