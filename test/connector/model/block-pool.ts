import assert from "node:assert/strict";
import type { BlockPool } from "../../../src/connector/scheduler/block-pool.js";
import { NUM_BLOCKS } from "./truth.js";

/** A pool that gives a block away again as soon as nobody holds it, and spoils it first. */
export class ModelPool implements BlockPool {
  readonly #engine = new Map<number, number>();
  readonly #connector = new Map<number, number>();
  readonly #spoil: (blockId: number) => void;
  #next = 0;

  constructor(spoil: (blockId: number) => void) {
    this.#spoil = spoil;
  }

  /** References that the connector holds. */
  get connectorReferences(): ReadonlyMap<number, number> {
    return this.#connector;
  }

  /** Blocks that the engine holds. */
  get engineBlocks(): number {
    return this.#engine.size;
  }

  touch(blockIds: readonly number[]): void {
    for (const blockId of blockIds) {
      assert.notEqual(blockId, 0, "the null block was touched");
      assert.ok(this.#held(blockId), `block ${blockId} was touched, but nobody holds it`);
      this.#connector.set(blockId, (this.#connector.get(blockId) ?? 0) + 1);
    }
  }

  freeBlocks(blockIds: readonly number[]): void {
    for (const blockId of blockIds) this.#release(this.#connector, blockId);
  }

  /** Takes blocks for the engine, the one freed last first, so that whoever still uses it is found out; undefined where there are too few. */
  take(count: number): number[] | undefined {
    const taken: number[] = [];
    for (let tried = 1; tried < NUM_BLOCKS && taken.length < count; tried++) {
      const blockId = 1 + ((this.#next + tried) % (NUM_BLOCKS - 1));
      if (!this.#held(blockId)) taken.push(blockId);
    }
    if (taken.length < count) return undefined;
    for (const blockId of taken) this.#engine.set(blockId, 1);
    return taken;
  }

  /** Gives blocks of the engine back. */
  give(blockIds: readonly number[]): void {
    for (const blockId of blockIds) {
      this.#next = blockId - 2;
      this.#release(this.#engine, blockId);
    }
  }

  #held(blockId: number): boolean {
    return this.#engine.has(blockId) || this.#connector.has(blockId);
  }

  #release(holder: Map<number, number>, blockId: number): void {
    const count = holder.get(blockId) ?? 0;
    assert.ok(count > 0, `block ${blockId} was given back, but was not held`);
    if (count > 1) holder.set(blockId, count - 1);
    else holder.delete(blockId);
    if (!this.#held(blockId)) this.#spoil(blockId);
  }
}
