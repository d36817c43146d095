import type { LookupSource } from "../../../src/connector/scheduler/pending-lookups.js";
import type { MooncakeStoreWorker } from "../../../src/connector/worker/mooncake-store-worker.js";
import type { LookupResult } from "../../../src/coordinator/lookup/lookup-session.js";
import type { BlockHashSequence } from "../../../src/hash/blob-block-hashes.js";
import type { LookupLog } from "./faulty-store.js";
import { BLOCK_TOKENS } from "./truth.js";
import type { World } from "./world.js";

/** The lookups of a worker, each compared with what the store has said in it. Now and then one says nothing. */
export class WatchedLookups implements LookupSource {
  /** Steps in which the lookups began that have no answer yet. */
  readonly open: Set<{ readonly since: number }> = new Set();
  readonly #world: World;
  readonly #worker: MooncakeStoreWorker;

  constructor(world: World, worker: MooncakeStoreWorker) {
    this.#world = world;
    this.#worker = worker;
  }

  lookup(numTokens: number, hashes: BlockHashSequence): Promise<LookupResult> {
    const { storm, random } = this.#world;
    return storm && random.chance(0.02) ? new Promise(() => {}) : this.#watched(numTokens, hashes);
  }

  reset(): Promise<boolean> {
    return this.#worker.reset();
  }

  async #watched(numTokens: number, hashes: BlockHashSequence): Promise<LookupResult> {
    const { store, step } = this.#world;
    const log: LookupLog = new Map();
    const open = { since: step };
    this.open.add(open);
    const result = await store.watchLookup(log, () => this.#worker.lookup(numTokens, hashes));
    this.open.delete(open);
    if (!result.failure) this.#check(result.hitLength / BLOCK_TOKENS, numTokens, hashes, log);
    return result;
  }

  /** What counts as stored was said to be, and so was that the next block is not. */
  #check(blocks: number, numTokens: number, hashes: BlockHashSequence, log: LookupLog): void {
    const { store, groups, memories } = this.#world;
    const answers = (index: number) => {
      const end = `@${Buffer.from(hashes.at(index)!).toString("hex")}`;
      return [...log].filter(([key]) => key.endsWith(end)).map(([, answer]) => answer);
    };
    for (let index = 0; index < blocks; index++) {
      const all = answers(index);
      if (all.length !== groups * memories.length || all.some((answer) => answer !== 1))
        store.violations.push(`a lookup counts block ${index} as stored; the store said ${all}`);
    }
    if (blocks < Math.floor((numTokens - 1) / BLOCK_TOKENS) && !answers(blocks).includes(0))
      store.violations.push(`a lookup counts block ${blocks} as absent; the store has not said so`);
  }
}
