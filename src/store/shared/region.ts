import type { ArenaMemory } from "./arena-memory.js";

/** Memory that calls may touch. */
export interface Region {
  /** A number that no other region of the store has or had. */
  readonly id: number;
  readonly address: bigint;
  /** Bytes. */
  readonly size: bigint;
  /** The arena in which all of it lies; undefined for memory of the caller. */
  readonly arena: ArenaMemory | undefined;
}
