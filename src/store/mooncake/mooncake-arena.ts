import type { Arena } from "../arena.js";
import type { SharedMemory } from "./memory.js";

/** An arena of a Mooncake store: memory that the sidecar maps, too. */
export class MooncakeArena implements Arena {
  readonly baseAddress: bigint;
  readonly size: number;
  readonly fileDescriptor: number | undefined;
  readonly bytes: Uint8Array;
  readonly #release: () => Promise<void>;
  #closing: Promise<void> | undefined;

  /** `release` takes the memory away from the store and gives it back. */
  constructor({ arena, bytes }: SharedMemory, release: () => Promise<void>) {
    this.baseAddress = arena.baseAddress;
    this.size = bytes.length;
    this.fileDescriptor = arena.fd < 0 ? undefined : arena.fd;
    this.bytes = bytes;
    this.#release = release;
  }

  close(): Promise<void> {
    this.#closing ??= this.#release();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
