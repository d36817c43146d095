import type { SegmentTable } from "../layout/segment-table.js";
import type { Arena } from "./arena.js";
import type { CallOptions, PutOptions, RemoveOptions } from "./shared/call-options.js";
import type { StoreKeys } from "./shared/keys.js";
import type { StoreUsage } from "./shared/usage.js";
import type { ReadResult, ReplicaResult, StoreResult } from "./store-result.js";

/** How a store is. Mirrors Mooncake's `health_check`. */
export interface StoreHealth {
  /** 0: healthy. 1: not open, or closed. 2: the master can't be reached. */
  readonly code: 0 | 1 | 2;
  readonly healthy: boolean;
  /** One sentence for a person. */
  readonly message: string;
  /** What the backend knows about its memory; absent where it knows nothing. */
  readonly usage?: StoreUsage | undefined;
}

/**
 * An object store for KV blocks: every backend has this interface, and the behaviour of Mooncake.
 *
 * Calls take batches and give one of Mooncake's result codes a key, in the order of the keys; a code is never swallowed
 * and never thrown (see `StoreResult.throwIfFailed`). What is thrown is misuse: `MooncakeKvError` `ERR_STORE` for lists
 * that do not fit together, for bad options and for a store that is closed; then nothing has happened. A call whose
 * `CallOptions.signal` is aborted before it has all its answers rejects with the signal's reason, and one whose backend
 * broke down under it with `ERR_STORE`; then a write may have happened or not. Key, segment and value lists may be reused as
 * soon as a call has returned its promise; the memory that segments point to may not before the promise is settled, and
 * nobody touches it afterwards.
 *
 * Codes that any call may give for any key, besides its own: -901 when the deadline (`CallOptions.deadlineMs`) came
 * before the key had its answer (a write may or may not have happened, a destination may be half written); -1 for a
 * failure inside; -800 and -900 when the owner of the memory or the master can't be reached; -1012 when the backend has
 * no such operation. A call that a backend lacks gives -1012 for every key, or as its number.
 *
 * An object is a non-empty sequence of bytes under a key of one byte or more. A *lease* protects an object from removal
 * and eviction for a time that the store sets; `exists`, `size`, `replicas`, `getInto` and `get` grant it to every
 * object that they find, whatever their own outcome.
 */
export interface KvStore extends AsyncDisposable {
  /** The scheme that opened it, as in `embedded:`. */
  readonly backend: string;

  /**
   * Makes `bytes` of zero-filled memory and registers them.
   *
   * @throws MooncakeKvError `ERR_STORE` for a size that is no whole number, is 0, or is too large for one typed array,
   * and on a backend that moves no bytes.
   */
  createArena(bytes: number): Promise<Arena>;

  /**
   * Allows calls to use `[address, address + bytes)`, memory that the caller owns and keeps alive. Memory of an arena of
   * this process, of any store, is taken away again when the arena is closed.
   *
   * @returns 0, or -600 for NULL, no bytes, memory that is not there, or an overlap with a registered region.
   */
  registerBuffer(address: bigint, bytes: number | bigint): Promise<number>;

  /**
   * Forbids it again: calls that begin later can't use it. Resolves when the last copy from it or to it has ended.
   *
   * @returns 0, or -600 for anything but the exact start of a registered region.
   */
  unregisterBuffer(address: bigint): Promise<number>;

  /**
   * Joins the segments of row i into one object under key i. A key that exists keeps its bytes, and so does one that
   * somebody is writing (both 0; a 0 therefore doesn't prove that the object can be read yet). Of equal keys in one
   * batch the first is stored, and the others give its outcome: 0. Mirrors `batch_put_from_multi_buffers`.
   *
   * Codes: 0; -600 for an empty key, no bytes, or a segment outside the registered regions; -200 for no room (eviction
   * may make some: try again a little later).
   */
  putFrom(
    keys: StoreKeys,
    segments: SegmentTable,
    options?: PutOptions & CallOptions,
  ): Promise<StoreResult<Int32Array>>;

  /** `putFrom` for values in JavaScript's own memory: one a key. Codes as there. Mirrors `put_batch`, but per key. */
  put(
    keys: StoreKeys,
    values: readonly Uint8Array[],
    options?: PutOptions & CallOptions,
  ): Promise<StoreResult<Int32Array>>;

  /**
   * `putFrom` that overwrites. An absent key is stored as by a put; an object of the same size may be overwritten in place,
   * and is -703 for readers that begin meanwhile; with another size the new bytes get new space, and the old space is given
   * back later, once no reader can be in it. What a reader gets that began before the upsert is a matter of the backend: see
   * the table of guarantees in docs/stores.md. An upsert that fails (-200 for no room above all) leaves the old value as it
   * was. Of equal keys in one batch the first is stored. Leases don't matter. Mirrors `batch_upsert_from`.
   *
   * Codes: as `putFrom`; -601 when another upsert of the key took over meanwhile.
   */
  upsertFrom(
    keys: StoreKeys,
    segments: SegmentTable,
    options?: PutOptions & CallOptions,
  ): Promise<StoreResult<Int32Array>>;

  /** `upsertFrom` for values in JavaScript's own memory: one a key. Mirrors `upsert_batch`, but per key. */
  upsert(
    keys: StoreKeys,
    values: readonly Uint8Array[],
    options?: PutOptions & CallOptions,
  ): Promise<StoreResult<Int32Array>>;

  /**
   * Spreads object i over the segments of row i, which must have exactly its size. A key may occur several times, and
   * fills every one of its destinations. Mirrors `batch_get_into_multi_buffers`.
   *
   * Codes: the bytes read; -704 for an absent key; -703 while its put runs; -600 for too small or foreign memory; -800
   * for too large memory; -707 when the lease ran out before the end of the read (read again). On an error other than
   * -707 and -901 nothing is written.
   */
  getInto(
    keys: StoreKeys,
    segments: SegmentTable,
    options?: CallOptions,
  ): Promise<StoreResult<BigInt64Array>>;

  /**
   * The values themselves, in memory of their own: `result.values[i]` is undefined where `result.codes[i]` is negative.
   * Mirrors `get_batch`, but tells a miss from an error.
   *
   * Codes: the size in bytes; -704, -703, -707 as `getInto`; -600 for a value too large for one typed array.
   */
  get(keys: StoreKeys, options?: CallOptions): Promise<ReadResult>;

  /** Codes: 1 for an object that can be read, else 0. Only exactly 1 counts as existence. Mirrors `batch_is_exist`. */
  exists(keys: StoreKeys, options?: CallOptions): Promise<StoreResult<Int32Array>>;

  /** Codes: the size in bytes; -704 for an absent key; -703 while its put runs. Mirrors `get_size`. */
  size(keys: StoreKeys, options?: CallOptions): Promise<StoreResult<BigInt64Array>>;

  /**
   * Where the copies of each object lie: `result.replicas[i]`, empty where `result.codes[i]` is negative. Mirrors
   * `batch_get_replica_desc`.
   *
   * Codes: the number of replicas; -704 for an absent key; -703 while its put runs.
   */
  replicas(keys: StoreKeys, options?: CallOptions): Promise<ReplicaResult>;

  /**
   * Codes: 0; -704 for an absent key; -706 under a lease, unless `force`; -703 while its put runs, also with `force`.
   * Mirrors `batch_remove`.
   */
  remove(keys: StoreKeys, options?: RemoveOptions): Promise<StoreResult<Int32Array>>;

  /**
   * Removes every object whose key contains a match of `pattern`, an ECMAScript regular expression as C++'s
   * `std::regex` reads it. Objects under a lease (unless `force`) and unfinished ones stay. Mirrors `remove_by_regex`.
   *
   * A backend that hands the pattern to a master sends nothing that could end or freeze it, whatever keys there are:
   * `masterPattern` says what is sent, or why not.
   *
   * @returns the number of objects removed, or a negative code: -600 for a pattern that is no regular expression, or is
   * none that the backend takes.
   */
  removeByRegex(pattern: string, options?: RemoveOptions): Promise<number>;

  /**
   * Removes every object, other clients' too. Objects under a lease (unless `force`) and unfinished ones stay. Mirrors
   * `remove_all`.
   *
   * @returns the number of objects removed, or a negative code.
   */
  removeAll(options?: RemoveOptions): Promise<number>;

  /** What the store holds and how it is used; undefined on a backend that can't tell. Grants no lease. */
  usage(options?: CallOptions): Promise<StoreUsage | undefined>;

  /** How the store is; a closed store says so, and so does one that can't be asked. Only bad options reject. */
  health(options?: CallOptions): Promise<StoreHealth>;

  /**
   * Ends the store: calls that have begun finish, later ones reject. Arenas stay usable memory until they are closed
   * themselves, or nobody can reach them any more. Closing twice is fine.
   */
  close(): Promise<void>;
}
