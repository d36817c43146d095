import type { Arena } from "./arena.js";
import type { ArenaMemory } from "./shared/arena-memory.js";

/** An arena as a caller holds it. */
export class StoreArena implements Arena {
  readonly #memory: ArenaMemory;

  constructor(memory: ArenaMemory) {
    this.#memory = memory;
  }

  get baseAddress(): bigint {
    return this.#memory.baseAddress;
  }

  get bytes(): Uint8Array {
    return this.#memory.bytes;
  }

  get size(): number {
    return this.#memory.size;
  }

  get fileDescriptor(): number | undefined {
    return this.#memory.fileDescriptor;
  }

  close(): Promise<void> {
    return this.#memory.free();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
