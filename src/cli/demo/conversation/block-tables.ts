import { NULL_BLOCK_ID } from "../../../connector/null-block.js";
import { type DemoModel, FULL_GROUP, SLIDING_GROUP } from "../model.js";
import type { DemoBlockPool } from "./block-pool.js";

/** The blocks of one request in both cache groups. */
export class BlockTables {
  readonly #pool: DemoBlockPool;
  readonly #model: DemoModel;
  readonly #tables: readonly [sliding: number[], full: number[]] = [[], []];

  constructor(pool: DemoBlockPool, model: DemoModel) {
    this.#pool = pool;
    this.#model = model;
  }

  /** One list a group, in token order; the null block where a window has moved on. A copy. */
  get blockIds(): number[][] {
    return this.#tables.map((table) => [...table]);
  }

  /**
   * Makes room for tokens up to `numTokens`, the first `numComputed` of which are there or will be loaded: blocks that no
   * later token looks at are given back, or never taken.
   *
   * @returns the new blocks, one list a group; null when there are none.
   */
  grow(numComputed: number, numTokens: number): number[][] | null {
    const { blockSize, slidingWindow } = this.#model;
    const below = Math.floor(Math.max(0, numComputed - slidingWindow + 1) / blockSize);
    const grown = this.#tables.map((table, group) => {
      const skipped = group === SLIDING_GROUP ? below : 0;
      this.#pool.freeBlocks(table.slice(0, skipped));
      table.fill(NULL_BLOCK_ID, 0, skipped);
      const known = table.length;
      while (table.length * blockSize < numTokens)
        table.push(table.length < skipped ? NULL_BLOCK_ID : this.#pool.allocate());
      return table.slice(known);
    });
    return grown[FULL_GROUP]!.length > 0 ? grown : null;
  }

  /** Gives all blocks back, the last one first. */
  free(): void {
    for (const table of this.#tables) this.#pool.freeBlocks(table.splice(0).reverse());
  }
}
