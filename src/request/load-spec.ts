import type { vllm027, vllm031, vllm033 } from "../../generated/typescript/all-releases.js";
import { DEFAULT_RELEASE, type Release } from "../release.js";
import { checkCount, complete, ofRelease, requestError } from "./checks.js";

interface LoadSpecs {
  readonly "vllm-0.27": vllm027.LoadSpec;
  readonly "vllm-0.31": vllm031.LoadSpec;
  readonly "vllm-0.33": vllm033.LoadSpec;
}

/** How much of a request is loaded from the store, as release `R` says it. Mirrors vLLM's `LoadSpec`. */
export type LoadSpec<R extends Release = "vllm-0.33"> = LoadSpecs[R];

type Required = "vllmCachedTokens" | "kvpoolCachedTokens" | "canLoad";

/** A load spec as a caller may write it: what has a default in vLLM may be left out. */
export type LoadSpecInit<R extends Release = "vllm-0.33"> = Pick<LoadSpec<R>, Required> &
  Partial<LoadSpec<R>>;

const REQUIRED: readonly Required[] = ["vllmCachedTokens", "kvpoolCachedTokens", "canLoad"];

const DEFAULTS: { readonly [R in Release]: Omit<LoadSpecs[R], Required> } = {
  "vllm-0.27": { tokenLen: 0 },
  "vllm-0.31": { tokenLen: 0, tailKeyBoundaries: [] },
  "vllm-0.33": { tokenLen: 0, tailKeyBoundaries: [] },
};

/**
 * A complete load spec.
 *
 * @throws MooncakeKvError `ERR_REQUEST` for a field that the release does not have, or a number of tokens that is none.
 */
export function createLoadSpec<R extends Release = "vllm-0.33">(
  init: LoadSpecInit<R>,
  release: R = DEFAULT_RELEASE as R,
): LoadSpec<R> {
  const spec = complete<LoadSpecs[Release]>("LoadSpec", REQUIRED, ofRelease(DEFAULTS, release), init);
  checkCount("vllmCachedTokens", spec.vllmCachedTokens);
  checkCount("kvpoolCachedTokens", spec.kvpoolCachedTokens);
  checkCount("tokenLen", spec.tokenLen);
  if (typeof spec.canLoad !== "boolean")
    throw requestError("canLoad must be true or false", { canLoad: spec.canLoad });
  return spec as LoadSpec<R>;
}
