import { constants } from "node:buffer";
import { describe, MooncakeKvError } from "../../errors.js";
import type { Addon } from "../../native/addon.js";
import { loadNative, nativeAvailable } from "../../native/load.js";
import type { Arena } from "../arena.js";
import { EmbeddedArena } from "../embedded/embedded-arena.js";
import type { WritableMemory } from "./memory-map.js";

/** The largest arena: what Node shows as one array of bytes, and the addon maps at once. */
const LARGEST = Math.min(constants.MAX_LENGTH, 2 ** 32 - 1);

/**
 * Where the addresses of arenas without the addon start: no processor of today has memory there, so that none can be
 * taken for the address of anything else.
 */
const MADE_UP_ADDRESSES = 0xa000_0000_0000_0000n;

let nextMadeUpAddress = MADE_UP_ADDRESSES;

/** Makes an arena; `unregister` takes its memory away from the store. */
export function makeArena(bytes: number, unregister: (address: bigint) => Promise<void>): Arena {
  if (!Number.isInteger(bytes) || bytes < 1 || bytes > LARGEST)
    throw new MooncakeKvError(
      "ERR_STORE",
      `createArena: the size is ${describe(bytes)}; an arena has a whole number of bytes from 1 to ${LARGEST}; make several arenas for more`,
      { bytes, largest: LARGEST },
    );
  try {
    if (!nativeAvailable()) return new HeapArena(bytes, unregister);
    const addon = loadNative();
    return new EmbeddedArena(addon, addon.arenaCreate(bytes), unregister);
  } catch (error) {
    throw new MooncakeKvError(
      "ERR_STORE",
      `createArena: the system gives no memory: ${error instanceof Error ? error.message : String(error)}`,
      { bytes },
      { cause: error },
    );
  }
}

/** The bytes of an arena. */
export function arenaMemory(arena: Arena): WritableMemory {
  const { bytes: memory } = arena;
  return { write: (offset, bytes) => memory.set(bytes, offset) };
}

/** Memory that somebody else owns; undefined when it can't be read and written now. */
export function foreignMemory(addon: Addon, address: bigint, bytes: bigint): WritableMemory | undefined {
  const memory = addon.memoryOpen(address, bytes);
  if (memory === null) return undefined;
  return { write: (offset, source) => addon.memoryWrite(memory, offset, source) };
}

/**
 * An arena without the addon: memory of JavaScript. Its address is made up; it means something to the store that made
 * the arena, and to nobody else.
 */
class HeapArena implements Arena {
  readonly baseAddress: bigint;
  readonly size: number;
  readonly fileDescriptor = undefined;
  readonly #unregister: (address: bigint) => Promise<void>;
  #bytes: Uint8Array;
  #closing: Promise<void> | undefined;

  constructor(bytes: number, unregister: (address: bigint) => Promise<void>) {
    this.#bytes = new Uint8Array(bytes);
    this.size = bytes;
    this.baseAddress = nextMadeUpAddress;
    // Whole pages, and one between two arenas: an address that runs over is found out.
    nextMadeUpAddress += (BigInt(bytes) / 4096n + 2n) * 4096n;
    this.#unregister = unregister;
  }

  get bytes(): Uint8Array {
    return this.#bytes;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await this.#unregister(this.baseAddress);
    structuredClone(this.#bytes.buffer, { transfer: [this.#bytes.buffer as ArrayBuffer] });
    this.#bytes = new Uint8Array(0);
  }
}
