/** The vLLM releases whose wire types this package speaks, oldest first. */
export const RELEASES = ["vllm-0.27", "vllm-0.31", "vllm-0.33"] as const;

/** A vLLM release, named as in `RELEASES`. */
export type Release = (typeof RELEASES)[number];

/** The release that is meant where none is given: the newest. */
export const DEFAULT_RELEASE: Release = "vllm-0.33";
