import type { CopyAddon } from "./copy-addon.js";
import type { MooncakeAddon } from "./mooncake-addon.js";
import type { NativeArena } from "./native-arena.js";

export type { NativeArena } from "./native-arena.js";

declare const storeHandle: unique symbol;
declare const memoryHandle: unique symbol;
declare const childHandle: unique symbol;
declare const cancellationHandle: unique symbol;

/** An embedded store inside the addon. Opaque; only the copy of the addon that gave it out takes it. */
export interface NativeStore {
  readonly [storeHandle]: never;
}

/** Memory that somebody else owns and keeps alive. Opaque; only the copy of the addon that gave it out takes it. */
export interface NativeMemory {
  readonly [memoryHandle]: never;
}

/** What cancels calls inside the addon. Opaque; only the copy of the addon that gave it out takes it. */
export interface NativeCancellation {
  readonly [cancellationHandle]: never;
}

/** A child process that ends with this environment. Opaque; only the copy of the addon that gave it out takes it. */
export interface NativeChildGuard {
  readonly [childHandle]: never;
}

/** What `arenaCreate` gives. */
export interface CreatedArena {
  readonly handle: NativeArena;
  /** The bytes of the arena themselves, not a copy. `arenaClose` detaches it. */
  readonly buffer: ArrayBuffer;
  /** The absolute address of the first byte. */
  readonly baseAddress: bigint;
  /** A descriptor of the same pages (a memfd), or -1 where the platform has none. It belongs to the arena. */
  readonly fd: number;
}

/** Counters of an embedded store; all zero once it is closed. */
export interface NativeStoreStats {
  readonly keys: bigint;
  /** Bytes for values. */
  readonly capacity: bigint;
  /** Sum of the object sizes in bytes, as Mooncake reports it. */
  readonly used: bigint;
  /** Bytes taken, with Mooncake's allocation rounding: what decides whether another object fits. */
  readonly occupied: bigint;
  /** Reads that found an object, and those that did not. */
  readonly hits: bigint;
  readonly misses: bigint;
  readonly stored: bigint;
  readonly removed: bigint;
  readonly evicted: bigint;
  readonly evictedBytes: bigint;
  /** Writes that found no room. */
  readonly refusals: bigint;
}

/** Options of an embedded store; the defaults are those of mooncake_master. */
export interface NativeStoreOptions {
  /** Bytes for values; 0 gives a store that takes nothing. */
  readonly capacity: bigint | number;
  /** How many threads share one large copy (0 chooses). */
  readonly copyThreads?: number | undefined;
  readonly leaseTtlMs?: number | undefined;
  readonly softPinTtlMs?: number | undefined;
  readonly maxSoftPinTtlMs?: number | undefined;
  readonly evictSoftPinned?: boolean | undefined;
  readonly evictionRatio?: number | undefined;
  readonly evictionHighWatermark?: number | undefined;
  readonly discardTimeoutMs?: number | undefined;
  readonly releaseTimeoutMs?: number | undefined;
  /** Time stands still until `storeAdvance`. */
  readonly manualClock?: boolean | undefined;
}

/** How the objects of one put are kept. */
export interface NativePutConfig {
  readonly replicaNum?: number | undefined;
  readonly hardPin?: boolean | undefined;
  readonly softPin?: boolean | undefined;
  readonly softPinTtlMs?: number | undefined;
  /** One a key, "" for none; a list of any other length, also an empty one, gives -600. */
  readonly groups?: readonly string[] | undefined;
}

/** What `storeGet` gives. */
export interface NativeValues {
  readonly codes: BigInt64Array;
  /** Holes where the code is negative. */
  readonly values: readonly (Uint8Array | undefined)[];
}

/** What `storeReplicas` gives; size and address only count where the code is 1. */
export interface NativeReplicas {
  readonly codes: Int32Array;
  readonly sizes: BigUint64Array;
  readonly addresses: BigUint64Array;
}

/**
 * The functions of the addon, as C++ exports them. Calls that return a promise run off the event loop; typed arrays
 * are copied before they leave it, so a caller may reuse them at once. Misuse throws (or rejects with) an `Error`
 * whose `code` is `ERR_NATIVE`; it never crashes.
 *
 * Keys come as `keyBytes` and `keyOffsets` (one offset a key plus the end), segments as `addresses`, `sizes` and
 * `rowOffsets` (one row a key). Result codes are Mooncake's own numbers.
 *
 * A call with `deadlineMs` or `cancellation` ends when that time has passed or the handle is cancelled: what has no answer
 * by then is -901. Only an upsert that overwrites bytes where they are goes on, as those would be lost.
 */
export interface Addon extends CopyAddon, MooncakeAddon {
  /** Changes whenever this interface does. */
  readonly bindingVersion: number;
  /** The version of the package from whose sources this addon was built. */
  readonly packageVersion: string;

  /** Maps `bytes` (1 to 2^32 - 1) of zero-filled memory. */
  arenaCreate(bytes: bigint | number): CreatedArena;
  /** Detaches the buffer. The memory stays while a store or a running call needs it. A second call does nothing. */
  arenaClose(arena: NativeArena): void;

  /** Something to cancel calls with, any number of them. */
  cancellationCreate(): NativeCancellation;
  /** Ends the calls that have the handle, and those that get it later, as if their deadline had come. */
  cancellationCancel(cancellation: NativeCancellation): void;

  /** Opens a store. */
  storeOpen(options: NativeStoreOptions): NativeStore;
  /**
   * 0, or -600 when the memory overlaps a registered region. The store keeps the arena's memory alive. With `address` and
   * `bytes` only that part of the arena is meant, which must lie inside.
   */
  storeRegisterArena(
    store: NativeStore,
    arena: NativeArena,
    address?: bigint,
    bytes?: bigint | number,
  ): Promise<number>;
  /** 0, or -600 for an empty, NULL, overlapping, wrapping or unmapped range. The caller keeps the memory alive. */
  storeRegister(store: NativeStore, address: bigint, bytes: bigint | number): Promise<number>;
  /** 0, or -600 for anything but the start of a region. Resolves when no running call uses the region any more. */
  storeUnregister(store: NativeStore, address: bigint): Promise<number>;
  /** One code a key: 0, -600, -200, -601, -901 or -1. */
  storePutFrom(
    store: NativeStore,
    keyBytes: Uint8Array,
    keyOffsets: Uint32Array,
    addresses: BigUint64Array,
    sizes: BigUint64Array,
    rowOffsets: Uint32Array,
    config: NativePutConfig | undefined,
    deadlineMs: number | undefined,
    cancellation?: NativeCancellation,
  ): Promise<Int32Array>;
  /** One code a key: 0, -600, -200, -601, -714, -901 or -1. */
  storeUpsertFrom(
    store: NativeStore,
    keyBytes: Uint8Array,
    keyOffsets: Uint32Array,
    addresses: BigUint64Array,
    sizes: BigUint64Array,
    rowOffsets: Uint32Array,
    config: NativePutConfig | undefined,
    deadlineMs: number | undefined,
    cancellation?: NativeCancellation,
  ): Promise<Int32Array>;
  /** `storePutFrom` for values of JavaScript, which are copied before it returns. */
  storePut(
    store: NativeStore,
    keyBytes: Uint8Array,
    keyOffsets: Uint32Array,
    values: readonly Uint8Array[],
    config: NativePutConfig | undefined,
    deadlineMs: number | undefined,
    cancellation?: NativeCancellation,
  ): Promise<Int32Array>;
  /** `storeUpsertFrom` for values of JavaScript, which are copied before it returns. */
  storeUpsert(
    store: NativeStore,
    keyBytes: Uint8Array,
    keyOffsets: Uint32Array,
    values: readonly Uint8Array[],
    config: NativePutConfig | undefined,
    deadlineMs: number | undefined,
    cancellation?: NativeCancellation,
  ): Promise<Int32Array>;
  /** One result a key: the bytes read, or -600, -703, -704, -707, -800, -901, -1. */
  storeGetInto(
    store: NativeStore,
    keyBytes: Uint8Array,
    keyOffsets: Uint32Array,
    addresses: BigUint64Array,
    sizes: BigUint64Array,
    rowOffsets: Uint32Array,
    deadlineMs: number | undefined,
    cancellation?: NativeCancellation,
  ): Promise<BigInt64Array>;
  /** The values in memory of their own; codes as `storeGetInto`, and -600 for one too large for a typed array. */
  storeGet(
    store: NativeStore,
    keyBytes: Uint8Array,
    keyOffsets: Uint32Array,
    deadlineMs: number | undefined,
    cancellation?: NativeCancellation,
  ): Promise<NativeValues>;
  /** 1, 0 or -901 a key. */
  storeExists(
    store: NativeStore,
    keyBytes: Uint8Array,
    keyOffsets: Uint32Array,
    deadlineMs: number | undefined,
    cancellation?: NativeCancellation,
  ): Promise<Int32Array>;
  /** The size in bytes, -703, -704 or -901 a key. */
  storeSize(
    store: NativeStore,
    keyBytes: Uint8Array,
    keyOffsets: Uint32Array,
    deadlineMs: number | undefined,
    cancellation?: NativeCancellation,
  ): Promise<BigInt64Array>;
  /** 1, -703, -704 or -901 a key. */
  storeReplicas(
    store: NativeStore,
    keyBytes: Uint8Array,
    keyOffsets: Uint32Array,
    deadlineMs: number | undefined,
    cancellation?: NativeCancellation,
  ): Promise<NativeReplicas>;
  /** 0, -703, -704, -706 or -901 a key. */
  storeRemove(
    store: NativeStore,
    keyBytes: Uint8Array,
    keyOffsets: Uint32Array,
    force: boolean,
    deadlineMs: number | undefined,
    cancellation?: NativeCancellation,
  ): Promise<Int32Array>;
  /**
   * How many objects went; -600 with nothing removed for a pattern (in UTF-8) that is none, is too large or too ambiguous;
   * -901 with nothing removed.
   */
  storeRemoveByRegex(
    store: NativeStore,
    pattern: Uint8Array,
    force: boolean,
    deadlineMs: number | undefined,
    cancellation?: NativeCancellation,
  ): Promise<number>;
  /** How many objects went, or -901: some may be gone then. */
  storeRemoveAll(
    store: NativeStore,
    force: boolean,
    deadlineMs: number | undefined,
    cancellation?: NativeCancellation,
  ): Promise<number>;
  storeStats(store: NativeStore): NativeStoreStats;
  /** Moves a manual clock on, with the rounds of eviction that fall due. Others ignore it. */
  storeAdvance(store: NativeStore, milliseconds: number): void;
  /** Drops objects and regions. Running calls finish; later ones give -600 for every key. */
  storeClose(store: NativeStore): Promise<void>;

  /** Begins puts for a client: 0, -705 for a key that exists, -600 for one that it has begun already, -200. */
  storeStartPut(
    store: NativeStore,
    client: number,
    keyBytes: Uint8Array,
    keyOffsets: Uint32Array,
    sizes: BigUint64Array,
    config: NativePutConfig | undefined,
  ): Int32Array;
  /** Copies segment i to the offset `targets[i]` of its object: the bytes of a key, or -600. */
  storeWritePut(
    store: NativeStore,
    client: number,
    keyBytes: Uint8Array,
    keyOffsets: Uint32Array,
    addresses: BigUint64Array,
    sizes: BigUint64Array,
    rowOffsets: Uint32Array,
    targets: BigUint64Array,
  ): BigInt64Array;
  /** 0, -600 for what the client has not begun, -601 when somebody took the key over. */
  storeEndPut(store: NativeStore, client: number, keyBytes: Uint8Array, keyOffsets: Uint32Array): Int32Array;
  /** As `storeEndPut`. */
  storeRevokePut(
    store: NativeStore,
    client: number,
    keyBytes: Uint8Array,
    keyOffsets: Uint32Array,
  ): Int32Array;

  /** A window on `[address, address + bytes)`, or null when that memory can't be read and written now. */
  memoryOpen(address: bigint, bytes: bigint | number): NativeMemory | null;
  /** Copies `bytes` to `offset`; throws when they do not lie inside. */
  memoryWrite(memory: NativeMemory, offset: number, bytes: Uint8Array): void;

  /**
   * Guards a child process of this one: it is ended and reaped when the environment (a worker thread, or the process) ends
   * before `childRelease`, or when nobody holds the handle any more.
   */
  childGuard(pid: number): NativeChildGuard;
  /** The child has ended. */
  childRelease(guard: NativeChildGuard): void;

  /** Which SHA-256 this processor runs. */
  readonly sha256Path: "sha-ni" | "armv8" | "portable";
  /**
   * The chained SHA-256 of token blocks, 32 bytes a block. `tokens` holds whole blocks of `blockSize`; `extras` are
   * the encoded extra keys of all blocks and end, for block i, at `extraEnds[i]` (a block without bytes has None).
   * `portable` avoids the processor's SHA instructions.
   */
  hashChain(
    format: "pickle" | "cbor",
    parent: Uint8Array,
    tokens: Uint32Array,
    blockSize: number,
    extras?: Uint8Array,
    extraEnds?: Uint32Array,
    portable?: boolean,
  ): Uint8Array;
  /** `hashChain` off the event loop. */
  hashChainAsync(
    format: "pickle" | "cbor",
    parent: Uint8Array,
    tokens: Uint32Array,
    blockSize: number,
    extras?: Uint8Array,
    extraEnds?: Uint32Array,
    portable?: boolean,
  ): Promise<Uint8Array>;
}

/** The `bindingVersion` that this package speaks. */
export const BINDING_VERSION: number = 3;
