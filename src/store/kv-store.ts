import type { SegmentTable } from "../layout/segment-table.js";
import type { Arena } from "./arena.js";
import type { StoreKeys } from "./keys.js";
import type { StoreResult } from "./store-result.js";

/** How a store is. Mirrors Mooncake's `health_check`. */
export interface StoreHealth {
  /** 0: healthy. 1: not open, or closed. 2: the master can't be reached. */
  readonly code: 0 | 1 | 2;
  readonly healthy: boolean;
  /** One sentence for a person. */
  readonly message: string;
  /** What the backend knows about its memory; absent where it knows nothing. */
  readonly usage?: StoreUsage;
}

/** What a store holds. */
export interface StoreUsage {
  readonly keys: bigint;
  /** Bytes for values. */
  readonly capacity: bigint;
  /** Sum of the object sizes in bytes. */
  readonly used: bigint;
  /** Bytes taken, with the rounding of the allocator: what decides whether another object fits. */
  readonly occupied: bigint;
}

/**
 * An object store for KV blocks: every backend has this interface, and the behaviour of Mooncake.
 *
 * Calls take batches and give one of Mooncake's result codes a key; a code is never swallowed and never thrown (see
 * `StoreResult.throwIfFailed`). What is thrown is misuse: `MooncakeKvError` `ERR_STORE` for lists that do not fit
 * together and for a store that is closed; then nothing has happened. Key and segment lists may be reused as soon as a
 * call has returned its promise; the memory that segments point to may not before the promise is settled.
 */
export interface KvStore extends AsyncDisposable {
  /** The scheme that opened it, as in `embedded:`. */
  readonly backend: string;

  /**
   * Makes `bytes` of zero-filled memory and registers them.
   *
   * @throws MooncakeKvError `ERR_STORE` for a size that is no whole number, is 0, or is too large for one typed array.
   */
  createArena(bytes: number): Promise<Arena>;

  /**
   * Allows calls to use `[address, address + bytes)`, memory that the caller owns and keeps alive.
   *
   * @returns 0, or -600 for NULL, no bytes, memory that is not there, or an overlap with a registered region.
   */
  registerBuffer(address: bigint, bytes: number | bigint): Promise<number>;

  /**
   * Forbids it again. Resolves when no running call uses the memory any more.
   *
   * @returns 0, or -600 for anything but the exact start of a registered region.
   */
  unregisterBuffer(address: bigint): Promise<number>;

  /**
   * Joins the segments of row i into one object under key i. A key that exists keeps its bytes (0); of equal keys in
   * one batch the first is stored.
   *
   * Codes: 0; -600 for an empty key, no bytes, or a segment outside the registered regions; -200 for no room.
   */
  putFrom(keys: StoreKeys, segments: SegmentTable): Promise<StoreResult<Int32Array>>;

  /**
   * Spreads object i over the segments of row i, which must have exactly its size. A key may occur several times.
   *
   * Codes: the bytes read; -704 for an absent key; -703 while its put runs; -600 for too small or foreign memory; -800
   * for too large memory. On an error nothing is written.
   */
  getInto(keys: StoreKeys, segments: SegmentTable): Promise<StoreResult<BigInt64Array>>;

  /** Codes: 1 for an object that can be read, else 0. Only exactly 1 counts as existence. */
  exists(keys: StoreKeys): Promise<StoreResult<Int32Array>>;

  /** Codes: the size in bytes; -704 for an absent key; -703 while its put runs. */
  size(keys: StoreKeys): Promise<StoreResult<BigInt64Array>>;

  /** Codes: 0; -704 for an absent key; -703 while its put runs. */
  remove(keys: StoreKeys): Promise<StoreResult<Int32Array>>;

  /** How the store is. Never rejects; a closed store says so. */
  health(): Promise<StoreHealth>;

  /**
   * Ends the store: calls that have begun finish, later ones reject. Arenas stay usable memory until they are closed
   * themselves. Closing twice is fine.
   */
  close(): Promise<void>;
}
