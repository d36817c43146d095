import assert from "node:assert/strict";
import type { MooncakeStoreWorker } from "../../../src/connector/worker/mooncake-store-worker.js";
import type { ModelBatch } from "./batch.js";
import type { ModelLoad, ModelRequest } from "./model-request.js";
import { BLOCK_TOKENS, rightBytes } from "./truth.js";
import { BOUND, type World } from "./world.js";

// What must be so after every step.

/** A store job that some rank has not reported. */
export interface OpenJob {
  readonly ranks: Set<number>;
  readonly since: number;
}

/** Everything of an engine that must end. */
export interface OpenWork {
  readonly batch: ModelBatch;
  readonly jobs: ReadonlyMap<number, OpenJob>;
  readonly lookups: Iterable<{ readonly since: number }>;
  readonly reset: { readonly since: number } | undefined;
}

/** Nothing is under way for longer than it may be, and the store has seen nothing that it must not see. */
export function checkBounds({ step, store }: World, { batch, jobs, lookups, reset }: OpenWork): void {
  assert.deepEqual(store.violations, []);
  const within = (since: number, what: string): void =>
    assert.ok(step - since < BOUND, `${what} does not end`);
  for (const { id, progressed, phase } of batch.requests)
    within(progressed, `request ${id}, which is ${phase},`);
  for (const { request, since } of batch.loads) within(since, `a load of ${request.id}`);
  for (const [storeJobId, { since }] of jobs) within(since, `job ${storeJobId}`);
  for (const { since } of lookups) within(since, "a lookup of a worker");
  if (reset) within(reset.since, "a reset");
}

/** Every block of a load that a rank has ended is right, or was said not to be. */
export function checkFilled(world: World, load: ModelLoad, rank: number): void {
  const { request, tables, hitLength, lost, failed, orphaned } = load;
  if (orphaned || failed) return;
  for (const [group, table] of tables.entries())
    for (const [index, blockId] of table.slice(0, hitLength / BLOCK_TOKENS).entries()) {
      if (lost.has(blockId)) continue;
      const bytes = world.memories[rank]!.block(blockId);
      if (Buffer.compare(bytes, rightBytes(request.family, index, group, rank)) !== 0)
        assert.fail(
          `block ${index} of ${request.id}, group ${group}, rank ${rank}, counts as filled: ${bytes}`,
        );
      world.note("blocks filled");
    }
}

/** Everything up to the offset of a request was stored, or existed: the store has said so. */
export class OffsetCheck {
  readonly #world: World;
  /** Offsets that were checked, by rank and request. */
  readonly #checked = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
  }

  check(rank: number, worker: MooncakeStoreWorker, requests: readonly ModelRequest[]): void {
    const { groups, store } = this.#world;
    for (const [reqId, offset] of worker.snapshot()!.savedOffsets) {
      if (this.#checked.get(`${rank}/${reqId}`) === offset) continue;
      this.#checked.set(`${rank}/${reqId}`, offset);
      const request = requests.find(({ id }) => id === reqId);
      for (let group = 0; group < groups; group++)
        for (const hash of request?.view().blockHashes.slice(0, offset / BLOCK_TOKENS) ?? []) {
          const key = `m@tp_rank:${rank}@pcp0@dcp0@pp_rank:0@group:${group}@${Buffer.from(hash).toString("hex")}`;
          assert.ok(store.acknowledged.has(key), `${key} counts as stored`);
        }
    }
  }
}
