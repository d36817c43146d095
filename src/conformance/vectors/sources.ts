import type { Release } from "../../release.js";

/** The releases behind the `source` and `same_in` names of the golden vectors. */
const RELEASE_OF_SOURCE: Readonly<Record<string, Release>> = {
  "vllm-0.33.0": "vllm-0.33",
  "vllm-0.31.0": "vllm-0.31",
  "vllm-0.27.1": "vllm-0.27",
  "seed-new": "vllm-0.31",
  "seed-old": "vllm-0.27",
};

/** The release that a source is; undefined for a source nobody knows. */
export function releaseOfSource(source: string): Release | undefined {
  return Object.hasOwn(RELEASE_OF_SOURCE, source) ? RELEASE_OF_SOURCE[source] : undefined;
}

/**
 * Words in an id that mark corners of numpy or Python which no sane input reaches. The vectors' README lets an
 * implementation refuse them instead.
 */
const REFUSABLE =
  /-(?:int64-wrap|uint64-wrap|address-over-int64|negative-[a-z-]+|gap-[a-z0-9-]+|unbounded-integers)$/;

/** Whether a record may be refused with an error of ours instead of being matched. */
export function mayBeRefused(id: string): boolean {
  return REFUSABLE.test(id);
}
