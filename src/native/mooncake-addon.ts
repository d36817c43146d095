import type { NativeArena } from "./native-arena.js";

declare const mooncakeHandle: unique symbol;

/** A client of Mooncake's C library. Opaque; only the copy of the addon that gave it out takes it. */
export interface NativeMooncake {
  readonly [mooncakeHandle]: never;
}

/** What `mooncake_store_setup` takes. No text has a NUL. */
export interface NativeMooncakeConfig {
  readonly localHostname: string;
  /** `P2PHANDSHAKE` or `http://...`: for anything else the library ends the process. */
  readonly metadataServer: string;
  readonly globalSegmentSize: bigint;
  readonly localBufferSize: bigint;
  readonly protocol: string;
  readonly deviceName: string;
  /** Not empty: the library would crash. */
  readonly masterServerAddress: string;
}

/** How the objects of one put are kept. */
export interface NativeMooncakePutConfig {
  readonly replicaNum: number;
  readonly softPin: boolean;
  readonly hardPin: boolean;
  readonly preferredSegments: readonly string[];
}

/** What `mooncakeHealth` gives; -901 for what was not answered in time. */
export interface NativeMooncakeHealth {
  /** What the library's own check says. */
  readonly health: number;
  /** What the master says to the question for a key: 0, 1 or a code. */
  readonly answer: number;
  /** host:port of the client; empty while it is not known. */
  readonly hostName: string;
}

/**
 * Mooncake's C library behind the addon. Its functions run on threads of the client's own, and may take minutes. Calls
 * have a number, new for each, by which they can be given up: then their promise gives what is known at once, -901 for
 * the rest, and nobody touches their memory any more. Bytes go through memory of those threads, which alone the library
 * sees.
 */
export interface MooncakeAddon {
  /** `threads` calls at a time (1 to 64), each with `stagingBytes` of memory, taken with the first use. */
  mooncakeOpen(threads: number, stagingBytes: number | bigint): NativeMooncake;
  /** Loads the library and sets the client up; 0 or Mooncake's code. Rejects when the library can't be loaded. */
  mooncakeSetup(
    store: NativeMooncake,
    id: number,
    library: string,
    config: NativeMooncakeConfig,
  ): Promise<number>;
  /**
   * 0, or -600 when the memory overlaps a registered region. The client keeps the arena's memory alive. With `address` and
   * `bytes` only that part of the arena is meant, which must lie inside.
   */
  mooncakeRegisterArena(
    store: NativeMooncake,
    arena: NativeArena,
    address?: bigint,
    bytes?: bigint | number,
  ): number;
  /** 0, or -600 for an empty, NULL, overlapping, wrapping or unmapped range. The caller keeps the memory alive. */
  mooncakeRegister(store: NativeMooncake, address: bigint, bytes: bigint | number): Promise<number>;
  /** 0, or -600 for anything but the start of a region. Resolves when nobody copies from or to the region any more. */
  mooncakeUnregister(store: NativeMooncake, address: bigint): Promise<number>;
  /** One code a key. */
  mooncakePutFrom(
    store: NativeMooncake,
    id: number,
    keyBytes: Uint8Array,
    keyOffsets: Uint32Array,
    addresses: BigUint64Array,
    sizes: BigUint64Array,
    rowOffsets: Uint32Array,
    config: NativeMooncakePutConfig,
  ): Promise<Int32Array>;
  /** One result a key: the bytes read, or a code. */
  mooncakeGetInto(
    store: NativeMooncake,
    id: number,
    keyBytes: Uint8Array,
    keyOffsets: Uint32Array,
    addresses: BigUint64Array,
    sizes: BigUint64Array,
    rowOffsets: Uint32Array,
  ): Promise<BigInt64Array>;
  /** 1, 0 or a code a key. */
  mooncakeExists(
    store: NativeMooncake,
    id: number,
    keyBytes: Uint8Array,
    keyOffsets: Uint32Array,
  ): Promise<Int32Array>;
  /** The size in bytes or a code a key. */
  mooncakeSize(
    store: NativeMooncake,
    id: number,
    keyBytes: Uint8Array,
    keyOffsets: Uint32Array,
  ): Promise<BigInt64Array>;
  /** 0 or a code a key. */
  mooncakeRemove(
    store: NativeMooncake,
    id: number,
    keyBytes: Uint8Array,
    keyOffsets: Uint32Array,
    force: boolean,
  ): Promise<Int32Array>;
  /** How many objects were removed, or a code, as the only element; without a pattern all are meant. */
  mooncakeRemoveMany(
    store: NativeMooncake,
    id: number,
    pattern: string | undefined,
    force: boolean,
  ): Promise<BigInt64Array>;
  mooncakeHealth(store: NativeMooncake, id: number): Promise<NativeMooncakeHealth>;
  /** Nobody waits for the call any more. */
  mooncakeGiveUp(store: NativeMooncake, id: number): void;
  /** How many threads hang in calls that were given up. */
  mooncakeLost(store: NativeMooncake): number;
  /** Lets no call in any more, and destroys the client once none is inside: 0, or -901 when that was given up. */
  mooncakeClose(store: NativeMooncake, id: number): Promise<number>;
  /** The same at the end of the process, which it holds up for at most so long; whether the client is destroyed. */
  mooncakeCloseNow(store: NativeMooncake, milliseconds: number): boolean;
}
