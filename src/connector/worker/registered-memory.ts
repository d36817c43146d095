import { describe } from "../../errors.js";
import type { CacheTensor } from "../../layout/cache-tensor.js";
import { limited } from "../call-limit.js";
import type { ConnectorLogger } from "../user-callbacks.js";
import type { WorkerStore } from "./store-calls.js";

/**
 * The memory that a worker has registered with its store. A store that refuses a region, fails or says nothing costs
 * warnings and time: puts from the region fail later, and are reported.
 */
export class RegisteredMemory {
  readonly #store: WorkerStore;
  readonly #ms: number;
  readonly #logger: Required<ConnectorLogger>;
  readonly #addresses: bigint[] = [];

  /** @param ms milliseconds that the registration of a region, and its end, may take. */
  constructor(store: WorkerStore, ms: number, logger: Required<ConnectorLogger>) {
    this.#store = store;
    this.#ms = ms;
    this.#logger = logger;
  }

  /** Registers the storage of each cache once. Never rejects. */
  async register(caches: readonly CacheTensor[]): Promise<void> {
    const storages = new Map<bigint, bigint>();
    for (const { storageAddress, storageBytes } of caches)
      if (!storages.has(storageAddress)) storages.set(storageAddress, storageBytes);
    await Promise.all(Array.from(storages, ([address, bytes]) => this.#register(address, bytes)));
  }

  /** Unregisters everything. Never rejects. */
  async unregister(): Promise<void> {
    await Promise.all(this.#addresses.splice(0).map((address) => this.#unregister(address)));
  }

  async #register(address: bigint, bytes: bigint): Promise<void> {
    const refused = (reason: object): void =>
      this.#logger.warn("the store does not accept a memory region", { address, bytes, ...reason });
    try {
      const code: unknown = await limited(
        { ms: this.#ms },
        "registerBuffer",
        () => this.#store.registerBuffer(address, bytes),
        // Nobody uses a region that was accepted so late, and nobody would unregister it.
        (outcome) => {
          if (outcome.status === "fulfilled" && outcome.value === 0) void this.#unregister(address);
        },
      );
      if (code === 0) this.#addresses.push(address);
      else refused({ code: describe(code) });
    } catch (error) {
      refused({ error });
    }
  }

  async #unregister(address: bigint): Promise<void> {
    try {
      const code: unknown = await limited({ ms: this.#ms }, "unregisterBuffer", () =>
        this.#store.unregisterBuffer(address),
      );
      if (code !== 0)
        this.#logger.warn("a memory region stays registered", { address, code: describe(code) });
    } catch (error) {
      this.#logger.warn("a memory region stays registered", { address, error });
    }
  }
}
