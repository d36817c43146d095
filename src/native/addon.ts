import type { CopyAddon } from "./copy-addon.js";

declare const arenaHandle: unique symbol;
declare const storeHandle: unique symbol;

/** An arena inside the addon. Opaque; only the copy of the addon that gave it out takes it. */
export interface NativeArena {
  readonly [arenaHandle]: never;
}

/** An embedded store inside the addon. Opaque; only the copy of the addon that gave it out takes it. */
export interface NativeStore {
  readonly [storeHandle]: never;
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
}

/**
 * The functions of the addon, as C++ exports them. Calls that return a promise run off the event loop; typed arrays
 * are copied before they leave it, so a caller may reuse them at once. Misuse throws (or rejects with) an `Error`
 * whose `code` is `ERR_NATIVE`; it never crashes.
 *
 * Keys come as `keyBytes` and `keyOffsets` (one offset a key plus the end), segments as `addresses`, `sizes` and
 * `rowOffsets` (one row a key). Result codes are Mooncake's own numbers.
 */
export interface Addon extends CopyAddon {
  /** Changes whenever this interface does. */
  readonly bindingVersion: number;

  /** Maps `bytes` (1 to 2^32 - 1) of zero-filled memory. */
  arenaCreate(bytes: bigint | number): CreatedArena;
  /** Detaches the buffer. The memory stays while a store or a running call needs it. A second call does nothing. */
  arenaClose(arena: NativeArena): void;

  /** Opens a store for `capacity` bytes; `copyThreads` share one large copy (0 chooses). */
  storeOpen(capacity: bigint | number, copyThreads: number): NativeStore;
  /** 0, or -600 when the memory overlaps a registered region. The store keeps the arena's memory alive. */
  storeRegisterArena(store: NativeStore, arena: NativeArena): Promise<number>;
  /** 0, or -600 for an empty, NULL, overlapping, wrapping or unmapped range. The caller keeps the memory alive. */
  storeRegister(store: NativeStore, address: bigint, bytes: bigint | number): Promise<number>;
  /** 0, or -600 for anything but the start of a region. Resolves when no running call uses the region any more. */
  storeUnregister(store: NativeStore, address: bigint): Promise<number>;
  /** One code a key: 0, -600, -200 or -1. */
  storePutFrom(
    store: NativeStore,
    keyBytes: Uint8Array,
    keyOffsets: Uint32Array,
    addresses: BigUint64Array,
    sizes: BigUint64Array,
    rowOffsets: Uint32Array,
  ): Promise<Int32Array>;
  /** One result a key: the bytes read, or -600, -703, -704, -800, -1. */
  storeGetInto(
    store: NativeStore,
    keyBytes: Uint8Array,
    keyOffsets: Uint32Array,
    addresses: BigUint64Array,
    sizes: BigUint64Array,
    rowOffsets: Uint32Array,
  ): Promise<BigInt64Array>;
  /** 1 or 0 a key. */
  storeExists(store: NativeStore, keyBytes: Uint8Array, keyOffsets: Uint32Array): Promise<Int32Array>;
  /** The size in bytes, -703 or -704 a key. */
  storeSize(store: NativeStore, keyBytes: Uint8Array, keyOffsets: Uint32Array): Promise<BigInt64Array>;
  /** 0, -703 or -704 a key. */
  storeRemove(store: NativeStore, keyBytes: Uint8Array, keyOffsets: Uint32Array): Promise<Int32Array>;
  storeStats(store: NativeStore): NativeStoreStats;
  /** Drops objects and regions. Running calls finish; later ones give -600 for every key. */
  storeClose(store: NativeStore): Promise<void>;

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
export const BINDING_VERSION: number = 1;
