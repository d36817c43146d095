import { constants } from "node:buffer";
import { describe, MooncakeKvError } from "../../errors.js";
import type { NativeArena } from "../../native/addon.js";
import { loadNative, nativeAvailable } from "../../native/load.js";

/** The most bytes of one arena: what Node shows as one array of bytes, and the addon maps at once. */
export const LARGEST_ARENA: number = Math.min(constants.MAX_LENGTH, 2 ** 32 - 1);

/**
 * Where the addresses of arenas without the addon start: no processor of today has memory there, so that none can be
 * taken for the address of anything else.
 */
let nextMadeUpAddress = 0xa000_0000_0000_0000n;

/** The arenas of this process that are open. Weak: an arena that nobody can reach any more is the collector's. */
const open = new Map<bigint, WeakRef<ArenaMemory>>();

/**
 * The memory of an arena, and whoever has it registered: it is given back when the last of them has let go. Stores of one
 * process know each other's arenas by their addresses, so that none of them is left with memory that is gone.
 */
export class ArenaMemory {
  readonly baseAddress: bigint;
  readonly size: number;
  /** The descriptor of the pages; undefined where there is none. */
  readonly fileDescriptor: number | undefined;
  /** The addon's arena; undefined for memory of JavaScript. */
  readonly handle: NativeArena | undefined;
  readonly #detachers = new Set<() => Promise<void>>();
  #bytes: Uint8Array;
  #freeing: Promise<void> | undefined;

  private constructor(bytes: Uint8Array, baseAddress: bigint, handle?: NativeArena, fileDescriptor?: number) {
    this.#bytes = bytes;
    this.baseAddress = baseAddress;
    this.size = bytes.length;
    this.handle = handle;
    this.fileDescriptor = fileDescriptor;
  }

  /**
   * Takes zero-filled memory. `heap` allows memory of JavaScript where there is no addon; its address is made up.
   *
   * @throws MooncakeKvError `ERR_STORE` for a size that no arena has, and when the system refuses; `ERR_NATIVE` without
   * the addon.
   */
  static allocate(operation: string, size: number, heap = false): ArenaMemory {
    if (!Number.isInteger(size) || size < 1 || size > LARGEST_ARENA)
      throw new MooncakeKvError(
        "ERR_STORE",
        `${operation}: the size is ${describe(size)}; an arena has a whole number of bytes from 1 to ${LARGEST_ARENA}, the most that Node shows as one array of bytes; make several arenas for more`,
        { operation, bytes: size, largest: LARGEST_ARENA },
      );
    const addon = heap && !nativeAvailable() ? undefined : loadNative();
    let memory: ArenaMemory;
    try {
      if (addon === undefined) {
        memory = new ArenaMemory(new Uint8Array(size), nextMadeUpAddress);
        // Whole pages, and one between two arenas: an address that runs over is found out.
        nextMadeUpAddress += (BigInt(size) / 4096n + 2n) * 4096n;
      } else {
        const { handle, buffer, baseAddress, fd } = addon.arenaCreate(size);
        memory = new ArenaMemory(new Uint8Array(buffer), baseAddress, handle, fd < 0 ? undefined : fd);
      }
    } catch (error) {
      throw refusedMemory(operation, error);
    }
    open.set(memory.baseAddress, new WeakRef(memory));
    collected.register(memory, memory.baseAddress, memory);
    return memory;
  }

  /** The open arenas of this process that have a byte of [address, address + size). */
  static overlapping(address: bigint, size: bigint): ArenaMemory[] {
    return [...open.values()].flatMap((reference) => {
      const memory = reference.deref();
      if (memory === undefined) return [];
      const apart = address + size <= memory.baseAddress || memory.#end <= address;
      return apart ? [] : [memory];
    });
  }

  /** The bytes; none once the memory is given back. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /** Whether all of [address, address + size) is in it. */
  holds(address: bigint, size: bigint): boolean {
    return address >= this.baseAddress && address + size <= this.#end;
  }

  /** Whether it is being given back, or is gone: nobody may begin to use it. */
  get closing(): boolean {
    return this.#freeing !== undefined;
  }

  /**
   * Notes somebody who uses the memory: `detach` is called when it is to be given back, and settles when that use is over.
   * Gives a function that takes the note back.
   */
  attach(detach: () => Promise<void>): () => void {
    this.#detachers.add(detach);
    return () => {
      this.#detachers.delete(detach);
    };
  }

  /** Gives the memory back once nobody uses it any more; views of it become empty. Twice is fine. */
  free(): Promise<void> {
    this.#freeing ??= this.#free();
    return this.#freeing;
  }

  get #end(): bigint {
    return this.baseAddress + BigInt(this.size);
  }

  async #free(): Promise<void> {
    await Promise.allSettled(Array.from(this.#detachers, (detach) => detach()));
    open.delete(this.baseAddress);
    collected.unregister(this);
    if (this.handle !== undefined) loadNative().arenaClose(this.handle);
    else structuredClone(this.#bytes.buffer, { transfer: [this.#bytes.buffer as ArrayBuffer] });
    this.#bytes = new Uint8Array(0);
  }
}

/** Forgets the address of an arena that the collector has taken, unless another one has it by now. */
const collected = new FinalizationRegistry<bigint>((baseAddress) => {
  if (open.get(baseAddress)?.deref() === undefined) open.delete(baseAddress);
});

/** The error of a call for which the system has no memory. */
export function refusedMemory(operation: string, cause: unknown): MooncakeKvError {
  return new MooncakeKvError(
    "ERR_STORE",
    `${operation}: the system gives no memory: ${cause instanceof Error ? cause.message : String(cause)}`,
    { operation },
    { cause },
  );
}
