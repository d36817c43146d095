import assert from "node:assert/strict";
import type { MooncakeStoreScheduler } from "../../../src/connector/scheduler/mooncake-store-scheduler.js";
import type { CachedRequestData, NewRequestData } from "../../../src/connector/scheduler/scheduler-output.js";
import type { ModelPool } from "./block-pool.js";
import { type ModelLoad, ModelRequest } from "./model-request.js";
import { BLOCK_TOKENS } from "./truth.js";
import type { World } from "./world.js";

/** What a step computes. */
export interface Scheduled {
  readonly fresh: NewRequestData[];
  readonly cached: CachedRequestData[];
  /** Tokens of each request. */
  readonly tokens: Map<string, number>;
}

/** The requests of an engine, their blocks, and what becomes of them in a step. */
export class ModelBatch {
  readonly requests: ModelRequest[] = [];
  /** Loads that some rank has not ended. */
  loads: ModelLoad[] = [];
  readonly #world: World;
  readonly #scheduler: MooncakeStoreScheduler;
  readonly #pool: ModelPool;
  /** Ids of aborted requests that come again, as those of clients do that try again. */
  readonly #again: string[] = [];
  #finished: string[] = [];
  #preempted: string[] = [];
  #nextId = 0;

  constructor(world: World, scheduler: MooncakeStoreScheduler, pool: ModelPool) {
    this.#world = world;
    this.#scheduler = scheduler;
    this.#pool = pool;
  }

  /** The requests that have ended and those that were preempted since the last call. */
  takeChanges(): { readonly finished: string[]; readonly preempted: string[] } {
    const changes = { finished: this.#finished, preempted: this.#preempted };
    this.#finished = [];
    this.#preempted = [];
    return changes;
  }

  /** Now and then a request arrives. */
  arrive(): void {
    const { random, groups, step } = this.#world;
    if (this.requests.length >= 7 || !random.chance(0.4)) return;
    const promptTokens = random.int(5, 130);
    const id = this.#again.shift() ?? `r${this.#nextId++}`;
    if (this.requests.some((request) => request.id === id) || this.#finished.includes(id)) {
      this.#again.push(id);
      return;
    }
    const lastTokens = promptTokens + random.int(0, 40);
    const family = random.int(1, 6);
    this.requests.push(new ModelRequest({ id, family, promptTokens, lastTokens, groups, step }));
    this.#world.note("requests");
  }

  /** Now and then one is aborted or preempted. */
  disturb(): void {
    const { random, step } = this.#world;
    for (const request of [...this.requests]) {
      if (request.phase === "running" && request.preemptions < 2 && random.chance(0.02))
        this.#preempt(request);
      // Whoever hangs is not helped.
      const hangs = step - request.progressed > 40;
      if (hangs || !random.chance(request.phase === "loading" ? 0.03 : 0.004)) continue;
      if (this.abort(request) && random.chance(0.7)) this.#again.push(request.id);
    }
  }

  /** Ends a request. Blocks that are loaded into stay with the load; then the answer is true. */
  abort(request: ModelRequest): boolean {
    const load = this.loads.find((each) => each.request === request);
    if (load !== undefined) {
      load.orphaned = true;
      request.tables = request.tables.map(() => []);
      this.#world.note("aborted loads");
    }
    this.finish(request);
    return load !== undefined;
  }

  /** A request has ended. */
  finish(request: ModelRequest): void {
    this.#giveBlocks(request);
    this.requests.splice(this.requests.indexOf(request), 1);
    this.#finished.push(request.id);
  }

  /** Decides what a step computes, and asks for and allocates what may be loaded. */
  schedule(): Scheduled {
    const scheduled: Scheduled = { fresh: [], cached: [], tokens: new Map() };
    for (const request of this.requests) if (request.phase === "running") this.#goOn(request, scheduled);
    for (const request of this.requests) {
      if (request.phase === "waiting") this.#lookUp(request);
      if (request.phase === "ready") this.#start(request, scheduled);
    }
    return scheduled;
  }

  /** A load has ended on all ranks: its request goes on behind what is filled. */
  loaded({ request, tables, hitLength, lost, failed, orphaned }: ModelLoad): void {
    if (orphaned) {
      this.#pool.give(tables.flat());
      return;
    }
    const blocks = hitLength / BLOCK_TOKENS;
    const gaps = tables.map((table) => table.slice(0, blocks).findIndex((blockId) => lost.has(blockId)));
    const filled = failed ? 0 : Math.min(blocks, ...gaps.filter((gap) => gap >= 0));
    request.computed = filled * BLOCK_TOKENS;
    request.phase = "ready";
    request.progressed = this.#world.step;
    this.#world.note(filled < blocks ? "loads with losses" : "whole loads");
  }

  #goOn(request: ModelRequest, { cached, tokens }: Scheduled): void {
    const { id: reqId, computed: numComputedTokens } = request;
    const chunk = this.#chunk(request);
    const added = this.#grow(request, numComputedTokens + chunk);
    if (added === undefined) {
      this.#preempt(request);
      return;
    }
    const newBlockIds = added[0]!.length > 0 ? added : null;
    cached.push({ reqId, resumed: false, newBlockIds, numComputedTokens });
    tokens.set(reqId, chunk);
  }

  #start(request: ModelRequest, { fresh, cached, tokens }: Scheduled): void {
    if (request.computed === request.numTokens) request.computed--;
    const chunk = this.#chunk(request);
    if (this.#grow(request, request.computed + chunk) === undefined) return;
    this.#scheduler.updateStateAfterAlloc(request.view(), request.tables, 0);
    const { id: reqId, computed: numComputedTokens } = request;
    const table = request.tables.map((blockIds) => [...blockIds]);
    if (request.resumes) cached.push({ reqId, resumed: true, newBlockIds: table, numComputedTokens });
    else fresh.push({ reqId, blockIds: table, numComputedTokens });
    tokens.set(reqId, chunk);
    request.phase = "running";
    request.progressed = this.#world.step;
  }

  #lookUp(request: ModelRequest): void {
    const { step, random, ranks } = this.#world;
    const [offered] = this.#scheduler.getNumNewMatchedTokens(request.view(), request.computed);
    if (offered === null) return;
    const possible = Number.isSafeInteger(offered) && offered >= 0 && offered <= request.numTokens;
    assert.ok(possible, `${offered} tokens were offered to a request of ${request.numTokens}`);
    assert.equal(offered % BLOCK_TOKENS, 0);
    request.phase = "ready";
    if (offered === 0 || random.chance(0.05)) return;
    if (this.#grow(request, offered) === undefined) {
      request.phase = "waiting";
      return;
    }
    this.#scheduler.updateStateAfterAlloc(request.view(), request.tables, offered);
    request.phase = "loading";
    request.progressed = step;
    const fate = { ranks: new Set(ranks), lost: new Set<number>(), failed: false, orphaned: false };
    this.loads.push({ request, tables: request.tables, hitLength: offered, since: step, ...fate });
  }

  #preempt(request: ModelRequest): void {
    this.#giveBlocks(request);
    request.phase = "waiting";
    request.computed = 0;
    request.resumes = true;
    request.preemptions++;
    this.#preempted.push(request.id);
    this.#world.note("preemptions");
  }

  #chunk({ computed, numTokens }: ModelRequest): number {
    return Math.min(numTokens - computed, this.#world.random.int(8, 48));
  }

  /** Makes the tables of a request long enough for so many tokens; the new blocks, or undefined for want of room. */
  #grow(request: ModelRequest, tokens: number): number[][] | undefined {
    const missing = Math.max(0, Math.ceil(tokens / BLOCK_TOKENS) - request.tables[0]!.length);
    const blocks = this.#pool.take(missing * this.#world.groups);
    if (blocks === undefined) return undefined;
    const added = request.tables.map((_, group) => blocks.slice(group * missing, (group + 1) * missing));
    request.tables = request.tables.map((table, group) => [...table, ...added[group]!]);
    return added;
  }

  #giveBlocks(request: ModelRequest): void {
    this.#pool.give(request.tables.flat());
    request.tables = request.tables.map(() => []);
  }
}
