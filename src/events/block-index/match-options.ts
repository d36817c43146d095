import { describe } from "../../errors.js";
import { checkNames } from "../../lookup/options.js";
import { configError } from "../errors.js";
import { DEVICE } from "./block-holders.js";
import type { MediaChoice } from "./prefix-match.js";

/** Which blocks and engines count in a match. */
export interface MatchOptions {
  /**
   * Tokens that a hit may have at most: an engine computes the last token of a request always, so that this is the
   * tokens of the request less one. Default: as many as the hashes cover.
   */
  readonly maxTokens?: number | undefined;
  /**
   * Only these media (`GPU`, `CPU`, `STORAGE`, in any case). The GPU is the engine's own cache; where the hit there ends
   * the others carry on. Default: all.
   */
  readonly media?: readonly string[] | undefined;
  /** Only these engines; names that nobody knows are passed over. Default: all. */
  readonly engines?: Iterable<string> | undefined;
}

const NAMES: readonly (keyof MatchOptions)[] = ["maxTokens", "media", "engines"];

/**
 * Options of a match, checked.
 *
 * @throws MooncakeKvError `ERR_CONFIG` that names the option, its value and what would be right.
 */
export function checkedMatchOptions(options: MatchOptions): { maxTokens: number; media: MediaChoice } {
  checkNames("match", options, NAMES);
  const { maxTokens = Number.POSITIVE_INFINITY, media, engines } = options;
  if (maxTokens !== Number.POSITIVE_INFINITY && (!Number.isSafeInteger(maxTokens) || maxTokens < 0))
    throw configError(`maxTokens is ${describe(maxTokens)}; it must be a whole number of 0 or more`, {
      maxTokens,
    });
  if (media !== undefined && (!Array.isArray(media) || !media.every((medium) => typeof medium === "string")))
    throw configError(`media is ${describe(media)}; it must be a list of names, such as GPU and CPU`, {
      media,
    });
  if (
    engines !== undefined &&
    (typeof engines === "string" || typeof engines?.[Symbol.iterator] !== "function")
  )
    throw configError(`engines is ${describe(engines)}; it must be a list of names`, { engines });
  return { maxTokens, media: media && new Set(media.map(mediumName)) };
}

/** How media are told apart: in capitals, and the engine's own where an event names none. */
export function mediumName(medium: string | null): string {
  return medium?.toUpperCase() ?? DEVICE;
}
