import { UsageError } from "../usage-error.js";

/** Token range of one hash, as `hash` and `chunks` print it. */
export type Span = readonly [start: number, end: number];

/** A span as a person reads it. */
function shown([start, end]: Span): string {
  return `${start} to ${end}`;
}

/**
 * Tokens of one hash, from the ranges that stand beside the hashes: they must follow each other from token 0 in equal steps, as
 * those of a prompt do.
 *
 * @param source where they stand, for the message.
 * @throws UsageError for ranges with gaps, or of different lengths: what their hashes are of can't be told.
 */
export function blockSizeOfSpans(spans: readonly Span[], source: string): number | undefined {
  const [first] = spans;
  if (first === undefined) return undefined;
  const size = first[1] - first[0];
  for (const [index, span] of spans.entries())
    if (span[0] !== index * size || span[1] !== (index + 1) * size)
      throw new UsageError(
        `${source}: hash ${index} is of tokens ${shown(span)}, where ${shown([index * size, (index + 1) * size])} should ` +
          "follow: these are not all blocks of a prompt from its beginning",
        { index, span },
      );
  return size;
}

/** Whether every span has a length. */
export function isSpan(start: unknown, end: unknown): boolean {
  return Number.isSafeInteger(start) && Number.isSafeInteger(end) && (start as number) < (end as number);
}
