import type { Addon, CreatedArena } from "../../native/addon.js";
import type { Arena } from "../arena.js";

/** An arena of an embedded store. */
export class EmbeddedArena implements Arena {
  readonly baseAddress: bigint;
  readonly size: number;
  readonly fileDescriptor: number | undefined;
  readonly #addon: Addon;
  readonly #created: CreatedArena;
  readonly #unregister: (address: bigint) => Promise<void>;
  readonly #bytes: Uint8Array;
  #closing: Promise<void> | undefined;

  /** `unregister` takes the memory away from the store, and resolves when no call uses it any more. */
  constructor(addon: Addon, created: CreatedArena, unregister: (address: bigint) => Promise<void>) {
    this.#addon = addon;
    this.#created = created;
    this.#unregister = unregister;
    this.#bytes = new Uint8Array(created.buffer);
    this.baseAddress = created.baseAddress;
    this.size = created.buffer.byteLength;
    this.fileDescriptor = created.fd < 0 ? undefined : created.fd;
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
    this.#addon.arenaClose(this.#created.handle);
  }
}
