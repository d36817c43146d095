import type { BlockStored } from "../kv-events.js";

/** What the last stored event was like: most are like the one before, and need no second look. */
export interface Lane {
  readonly groupIdx: number | null;
  readonly medium: string | null;
  readonly blockSize: number;
  readonly kind: string | null;
  readonly slidingWindow: number | null;
  /** The tag of such blocks. */
  readonly tag: number;
}

/** Whether an event is of the kind of a lane. */
export function isLike(event: BlockStored, lane: Lane): boolean {
  return (
    event.groupIdx === lane.groupIdx &&
    event.medium === lane.medium &&
    event.blockSize === lane.blockSize &&
    event.kvCacheSpecKind === lane.kind &&
    event.kvCacheSpecSlidingWindow === lane.slidingWindow
  );
}

/** The lane of an event. */
export function laneOf(event: BlockStored, tag: number): Lane {
  return {
    groupIdx: event.groupIdx,
    medium: event.medium,
    blockSize: event.blockSize,
    kind: event.kvCacheSpecKind,
    slidingWindow: event.kvCacheSpecSlidingWindow,
    tag,
  };
}
