/** What a store holds, and how often it was used. A number that a backend can't know is absent. */
export interface StoreUsage {
  /** Bytes for values, of all segments together. */
  readonly capacity: bigint;
  /** Sum of the object sizes in bytes, without the rounding of the allocator: what Mooncake reports as used. */
  readonly used: bigint;
  /** Bytes taken, with the rounding of the allocator: what decides whether another object fits. */
  readonly occupied?: bigint | undefined;
  /** Objects, unfinished ones included. */
  readonly keys?: bigint | undefined;
  readonly counters?: StoreCounters | undefined;
}

/**
 * Counts that only grow: of an embedded store since it was opened, of a cluster since its master was started, whoever
 * made the calls. A number that a backend can't know is absent.
 */
export interface StoreCounters {
  /** Reads (`getInto`, `get`) that found an object, one a key. A master counts whoever asks where an object lies. */
  readonly hits?: bigint | undefined;
  /** The same that found none. A master counts unfinished objects among them. */
  readonly misses?: bigint | undefined;
  /** Objects stored by puts and upserts. */
  readonly stored?: bigint | undefined;
  /** Objects removed on request. */
  readonly removed?: bigint | undefined;
  /** Objects dropped to make room. */
  readonly evicted?: bigint | undefined;
  readonly evictedBytes?: bigint | undefined;
  /** Writes refused for want of room (-200), one a key. */
  readonly refusals?: bigint | undefined;
}
