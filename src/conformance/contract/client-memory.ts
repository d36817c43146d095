import type { JsonValue } from "../vectors/handler.js";
import { isObject } from "../vectors/json.js";
import type { ContractBuffer, ContractClient } from "./world.js";

/** A memory range that a step names. */
export interface Place {
  readonly address: bigint;
  readonly size: number;
  /** The bytes, where they can be looked at. */
  readonly bytes: Uint8Array | undefined;
}

interface NamedBuffer {
  readonly address: bigint;
  readonly size: number;
  /** Gone once it is freed; steps may still name its addresses. */
  memory: ContractBuffer | undefined;
}

/** The memory of one client as steps address it, and which of it is registered. */
export class ClientMemory {
  readonly #client: ContractClient;
  readonly #buffers = new Map<string, NamedBuffer>();
  readonly #regions = new Map<bigint, number>();

  constructor(client: ContractClient) {
    this.#client = client;
  }

  /** `where` is an offset in the arena, `[name, offset]` or `{"addr": n}`. */
  place(where: JsonValue | undefined, size: number): Place {
    if (typeof where === "number") return inside(this.#client.arena, where, size);
    if (Array.isArray(where)) {
      const buffer = this.#buffers.get(String(where[0]));
      if (!buffer) throw new TypeError(`there is no buffer ${JSON.stringify(where[0])}`);
      const offset = Number(where[1]);
      if (buffer.memory) return inside(buffer.memory, offset, size);
      return { address: buffer.address + BigInt(offset), size, bytes: undefined };
    }
    if (isObject(where)) return { address: BigInt(Number(where["addr"])), size, bytes: undefined };
    throw new TypeError(`${JSON.stringify(where)} is no place`);
  }

  async allocate(name: string, size: number): Promise<void> {
    const memory = await this.#client.allocate(size);
    this.#buffers.set(name, { address: memory.address, size, memory });
  }

  async free(name: string): Promise<void> {
    const buffer = this.#buffers.get(name);
    if (!buffer?.memory) throw new TypeError(`there is no buffer ${JSON.stringify(name)}`);
    const end = buffer.address + BigInt(buffer.size);
    for (const start of [...this.#regions.keys()])
      if (start >= buffer.address && start < end) this.#regions.delete(start);
    const { memory } = buffer;
    buffer.memory = undefined;
    await memory.free();
  }

  /** Notes what the store has accepted. */
  registered(address: bigint, size: number): void {
    this.#regions.set(address, size);
  }

  /** Notes what the store has given up. */
  unregistered(address: bigint): void {
    this.#regions.delete(address);
  }

  /** Notes that the store is closed or new. */
  nothingRegistered(): void {
    this.#regions.clear();
  }

  /** Whether a call may not use the place, because it lies outside every registered region. */
  isForeign({ address, size }: Place): boolean {
    if (size === 0) return false;
    for (const [start, length] of this.#regions)
      if (address >= start && address + BigInt(size) <= start + BigInt(length)) return false;
    return true;
  }
}

function inside(memory: ContractBuffer, offset: number, size: number): Place {
  const fits = offset >= 0 && offset + size <= memory.bytes.length;
  return {
    address: memory.address + BigInt(offset),
    size,
    bytes: fits ? memory.bytes.subarray(offset, offset + size) : undefined,
  };
}
