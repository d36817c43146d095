/** Why an event was passed over. */
export type BlockIndexProblemReason =
  /** It could not be read. */
  | "unreadable"
  /** Its blocks have another size than those of its group, or are no multiple of the engine's hashes. */
  | "block-size"
  /** It is of a group that the engine does not have by its configuration. */
  | "unknown-group"
  /** The index has as many engines as it may have. */
  | "too-many-engines"
  /** The index tells 255 combinations of group and medium apart, no more. */
  | "too-many-groups";

/** An event that was passed over. */
export interface BlockIndexProblem {
  readonly engine: string;
  readonly reason: BlockIndexProblemReason;
  /** What was wrong with it, and what would be right. */
  readonly message: string;
}

/** How many events there were, by what became of them; those of blocks count blocks. */
export interface BlockIndexCounters {
  stored: number;
  removed: number;
  /** Removed, but not known to be there: evicted from the index, or stored before it listened. */
  removedUnknown: number;
  /** Stored, but not counted as a further copy for want of room. */
  uncountedCopies: number;
  cleared: number;
  /** Events that were passed over, by reason. */
  readonly problems: Record<BlockIndexProblemReason, number>;
}

/** Counters that stand at 0. */
export function newCounters(): BlockIndexCounters {
  return {
    stored: 0,
    removed: 0,
    removedUnknown: 0,
    uncountedCopies: 0,
    cleared: 0,
    problems: {
      unreadable: 0,
      "block-size": 0,
      "unknown-group": 0,
      "too-many-engines": 0,
      "too-many-groups": 0,
    },
  };
}
