import assert from "node:assert/strict";
import { MooncakeStoreScheduler } from "../../../src/connector/mooncake-store-scheduler.js";
import { MooncakeStoreWorker } from "../../../src/connector/mooncake-store-worker.js";
import { PendingLookups } from "../../../src/connector/pending-lookups.js";
import type { CachedRequestData, NewRequestData } from "../../../src/connector/scheduler-output.js";
import type { ConnectorLogger } from "../../../src/connector/user-callbacks.js";
import type { LookupResult } from "../../../src/coordinator/lookup-session.js";
import { isMooncakeKvError } from "../../../src/errors.js";
import type { BlockHashSequence } from "../../../src/hash/blob-block-hashes.js";
import type { MooncakeStoreConnectorMetadata } from "../../../src/request/connector-metadata.js";
import { output } from "../helpers/scheduler.js";
import { ModelPool } from "./block-pool.js";
import type { VirtualClock } from "./clock.js";
import { EventLedger } from "./event-ledger.js";
import { COPY_MS, FaultyStore, type LookupLog } from "./faulty-store.js";
import { impossibleReport } from "./impossible-reports.js";
import { LyingClient } from "./lying-client.js";
import { type ModelLoad, ModelRequest } from "./model-request.js";
import type { Random } from "./random.js";
import { BLOCK_TOKENS, NUM_BLOCKS, RankMemory, rightBytes } from "./truth.js";

/** Milliseconds that the model lets things take; small, so that many are given up. */
const WORKER_LIMITS = {
  loadMs: 24,
  saveMs: 30,
  graceMs: COPY_MS + 6,
  lookupMs: 8,
  resetMs: 60,
  registerMs: 20,
  closeMs: 6,
};
const SCHEDULER_LIMITS = { lookupMs: 20, resetMs: 400 };
/** Steps in which everything must come further: each takes a millisecond or more, and every limit is far shorter. */
const BOUND = 400;

/** What a run has seen; a model in which nothing happens proves nothing. */
export interface Seen {
  [what: string]: number;
}

interface OpenJob {
  readonly ranks: Set<number>;
  readonly since: number;
}

/**
 * A whole little engine: requests arrive, are looked up, loaded, computed in chunks, saved, preempted, aborted and end, on
 * one or two ranks, over a store, a lookup client, a logger and a fence that do their worst. After every step it compares
 * what it was told with what is so.
 */
export class ModelEngine {
  readonly store: FaultyStore;
  readonly client: LyingClient;
  readonly scheduler: MooncakeStoreScheduler;
  readonly workers: readonly MooncakeStoreWorker[];
  readonly seen: Seen;
  readonly #clock: VirtualClock;
  readonly #random: Random;
  readonly #groups: number;
  readonly #memories: readonly RankMemory[];
  readonly #pool: ModelPool;
  readonly #lookups: PendingLookups;
  readonly #events: EventLedger;
  readonly #requests: ModelRequest[] = [];
  #loads: ModelLoad[] = [];
  readonly #jobs = new Map<number, OpenJob>();
  #finished: string[] = [];
  #preempted: string[] = [];
  /** Ids of aborted requests that come again, as those of clients do that try again. */
  readonly #again: string[] = [];
  /** What the model has computed in this step, and the device has not written yet. */
  #unwritten: (() => void)[] = [];
  /** Lookups of the worker that have not answered. */
  readonly #openLookups = new Set<{ readonly since: number }>();
  /** Offsets that were checked, by rank and request. */
  readonly #offsets = new Map<string, number>();
  #step = 0;
  #nextId = 0;
  #reset: { readonly since: number; readonly done: Promise<void> } | undefined;
  storm = true;

  constructor(clock: VirtualClock, random: Random, seen: Seen) {
    this.#clock = clock;
    this.#random = random;
    this.seen = seen;
    const ranks = random.int(1, 2);
    this.#groups = random.chance(0.3) ? 2 : 1;
    this.#memories = Array.from({ length: ranks }, (_, rank) => new RankMemory(rank));
    this.store = new FaultyStore(clock, random, this.#memories);
    this.#pool = new ModelPool((blockId) => {
      for (const memory of this.#memories) memory.block(blockId).fill(0xee);
    });
    const config = {
      kvRole: "kv_both" as const,
      blockSize: BLOCK_TOKENS,
      kvCacheGroups: Array.from({ length: this.#groups }, (_, group) => ({
        kvCacheSpec: { kind: "full" as const, blockSize: BLOCK_TOKENS, headSize: 16 * (group + 1) },
      })),
      worldSize: ranks,
      enableKvEvents: random.chance(0.7),
      extraConfig: { save_decode_cache: random.chance(0.5), lookup_async: true },
    };
    const options = {
      recvThreads: random.int(1, 3),
      maxQueuedLoads: random.chance(0.2) ? 1 : 100,
      maxQueuedSaves: random.chance(0.2) ? 1 : 100,
      diskOffloadBufferBudgetBytes: random.chance(0.3) ? 30_000 : undefined,
      tierLog: random.chance(0.3),
      timeLimits: WORKER_LIMITS,
      logger: this.#logger(),
    };
    this.workers = this.#memories.map(
      (_, tpRank) =>
        new MooncakeStoreWorker({
          config: { ...config, model: "m", numKvHeads: 8, tpSize: ranks, tpRank },
          store: this.store,
          ...options,
        }),
    );
    const source = {
      lookup: (numTokens: number, hashes: BlockHashSequence) =>
        this.storm && random.chance(0.02)
          ? new Promise<never>(() => {})
          : this.#watchedLookup(numTokens, hashes),
      reset: () => this.workers[0]!.reset(),
    };
    this.#lookups = new PendingLookups(source, { timeoutMs: 50 });
    this.client = new LyingClient(this.#lookups, random);
    // Without a limit of the scheduler side that of its client has to do.
    this.client.maySayNothing = random.chance(0.7);
    const lookupMs = this.client.maySayNothing ? SCHEDULER_LIMITS.lookupMs : 1_000_000;
    this.scheduler = new MooncakeStoreScheduler({
      config,
      lookupClient: this.client,
      blockPool: this.#pool,
      timeLimits: { ...SCHEDULER_LIMITS, lookupMs },
      logger: this.#logger(),
    });
    this.#events = new EventLedger(ranks, this.#groups, random);
  }

  /** Registers the caches of all ranks, each twice at once: one of the two must be refused. */
  async register(): Promise<void> {
    this.#calm();
    const done = this.workers.map(async (worker, rank) => {
      const tensors = this.#memories[rank]!.tensors();
      const both = await Promise.allSettled([
        worker.registerKvCaches(tensors, NUM_BLOCKS),
        worker.registerKvCaches(tensors, NUM_BLOCKS),
      ]);
      assert.deepEqual(
        both.map(({ status }) => status),
        ["fulfilled", "rejected"],
        "of two registrations at once one is refused",
      );
    });
    await this.#within(Promise.all(done), "the registration");
  }

  /** Requests and jobs that have not ended. */
  get open(): number {
    return this.#requests.length + this.#loads.length + this.#jobs.size;
  }

  /** One step of the engine. */
  async step(arrivals: boolean): Promise<void> {
    this.#step++;
    await this.#clock.pass(this.#random.int(1, 4));
    this.#calm();
    this.#writeAll();
    if (arrivals) this.#arrive();
    this.#abortSome();
    this.#preemptSome();
    const { fresh, cached, scheduled } = this.#schedule();
    const loadsBefore = this.#loads.filter(({ since }) => since === this.#step);
    const meta = this.scheduler.buildConnectorMeta(
      output({
        new: fresh,
        cached,
        scheduled: Object.fromEntries(scheduled),
        finished: this.#finished,
        preempted: this.#preempted,
        tables: Object.fromEntries(this.#requests.map(({ id, tables }) => [id, tables])),
      }),
    );
    const finished = this.#finished;
    this.#finished = [];
    this.#preempted = [];
    this.#takeJobs(meta, loadsBefore);
    for (const worker of this.workers) worker.startLoadKv(meta);
    this.#compute(scheduled);
    for (const worker of this.workers) worker.waitForSave(meta, this.#fence());
    this.#collect(meta, finished);
    this.#checkBounds();
    this.#maybeReset();
  }

  /**
   * Closes the workers in the middle of everything, which takes no longer than it may, and lets them report the rest. What
   * still waits goes away with the engine.
   */
  async breakOff(): Promise<void> {
    const before = performance.now();
    await this.#within(Promise.all(this.workers.map((worker) => worker.close())), "close");
    const took = performance.now() - before;
    assert.ok(took <= 2 * WORKER_LIMITS.closeMs + 4, `close took ${took} ms`);
    this.#writeAll();
    for (const request of [...this.#requests]) {
      for (const load of this.#loads) if (load.request === request) load.orphaned = true;
      if (request.phase === "loading") request.tables = request.tables.map(() => []);
      this.#finish(request);
    }
    const nothing = this.scheduler.buildConnectorMeta(output({ finished: this.#finished }));
    while (this.open > 0) {
      this.#step++;
      await this.#clock.pass(1);
      this.#collect(nothing, []);
      this.#checkBounds();
    }
    this.#note("engines closed in the middle");
  }

  /** Ends a life: nothing may be left. */
  async end(): Promise<void> {
    await this.#within(Promise.resolve(this.#reset?.done), "a reset");
    for (const worker of this.workers)
      assert.deepEqual(
        [...worker.snapshot()!.liveJobs.values()].flat(),
        [],
        "a job of a worker is still live",
      );
    assert.deepEqual([...this.#pool.connectorReferences], [], "block references that never came back");
    assert.equal(this.#pool.engineBlocks, 0);
    assert.equal(this.scheduler.hasPendingPushWork(), false);
    assert.deepEqual([...this.scheduler.pinnedSaves], []);
    assert.deepEqual([...this.scheduler.loadSpecs], []);
    assert.deepEqual([...this.#lookups.pending], []);
    const { hits, misses, ...troubles } = this.scheduler.lookupCounts;
    assert.equal(troubles.failed, this.client.said.failures, "failed lookups were counted otherwise");
    assert.equal(troubles.refused, this.client.said.impossible, "impossible answers were counted otherwise");
    this.#note("lookups with a hit", hits);
    this.#note("lookups without one", misses);
    for (const [name, count] of Object.entries(troubles)) this.#note(`lookups ${name}`, count);
    for (const [mood, count] of Object.entries(this.store.moods)) this.#note(`store ${mood}`, count);
    await this.#within(Promise.all(this.workers.map((worker) => worker.close())), "close");
    // A registration that was given up may still come, and every lookup has ended.
    await this.#clock.pass(300);
    assert.equal(this.#openLookups.size, 0, "lookups of a worker that do not end");
    assert.deepEqual([...this.store.registered], [], "memory stayed registered");
    assert.deepEqual([...this.store.owed], [], "objects of puts that were given up");
    assert.deepEqual(this.store.violations, []);
  }

  /** Lets time pass until something is done, and no longer than anything may take. */
  async #within<T>(work: Promise<T>, what: string): Promise<T> {
    let done = false;
    work.then(
      () => (done = true),
      () => (done = true),
    );
    for (let i = 0; i < BOUND && !done; i++) await this.#clock.pass(1);
    assert.ok(done, `${what} does not end`);
    return work;
  }

  #calm(): void {
    this.store.stormy = this.storm;
    this.client.dishonesty = this.storm ? 0.12 : 0;
  }

  #arrive(): void {
    if (this.#requests.length >= 7 || !this.#random.chance(0.4)) return;
    const promptTokens = this.#random.int(5, 130);
    const id = this.#again.shift() ?? `r${this.#nextId++}`;
    if (this.#requests.some((request) => request.id === id) || this.#finished.includes(id)) {
      this.#again.push(id);
      return;
    }
    this.#requests.push(
      new ModelRequest({
        id,
        family: this.#random.int(1, 6),
        promptTokens,
        lastTokens: promptTokens + this.#random.int(0, 40),
        groups: this.#groups,
        step: this.#step,
      }),
    );
    this.#note("requests");
  }

  #abortSome(): void {
    for (const request of [...this.#requests]) {
      // Whoever hangs is not helped.
      if (this.#step - request.progressed > 40) continue;
      if (!this.#random.chance(request.phase === "loading" ? 0.03 : 0.004)) continue;
      const load = this.#loads.find((each) => each.request === request);
      if (load !== undefined) {
        load.orphaned = true;
        if (this.#random.chance(0.7)) this.#again.push(request.id);
        request.tables = request.tables.map(() => []);
        this.#note("aborted loads");
      }
      this.#finish(request);
    }
  }

  #preemptSome(): void {
    for (const request of this.#requests)
      if (request.phase === "running" && request.preemptions < 2 && this.#random.chance(0.02))
        this.#preempt(request);
  }

  #preempt(request: ModelRequest): void {
    this.#giveBlocks(request);
    request.phase = "waiting";
    request.computed = 0;
    request.resumes = true;
    request.preemptions++;
    this.#preempted.push(request.id);
    this.#note("preemptions");
  }

  #finish(request: ModelRequest): void {
    this.#giveBlocks(request);
    this.#requests.splice(this.#requests.indexOf(request), 1);
    this.#finished.push(request.id);
  }

  #giveBlocks(request: ModelRequest): void {
    this.#pool.give(request.tables.flat());
    request.tables = request.tables.map(() => []);
  }

  /** Makes the tables of a request long enough for so many tokens; the new blocks, or undefined for want of room. */
  #grow(request: ModelRequest, tokens: number): number[][] | undefined {
    const missing = Math.max(0, Math.ceil(tokens / BLOCK_TOKENS) - request.tables[0]!.length);
    const blocks = this.#pool.take(missing * this.#groups);
    if (blocks === undefined) return undefined;
    const added = request.tables.map((_, group) => blocks.slice(group * missing, (group + 1) * missing));
    request.tables = request.tables.map((table, group) => [...table, ...added[group]!]);
    return added;
  }

  #schedule() {
    const fresh: NewRequestData[] = [];
    const cached: CachedRequestData[] = [];
    const scheduled = new Map<string, number>();
    for (const request of this.#requests) {
      if (request.phase !== "running") continue;
      const chunk = this.#chunk(request);
      const added = this.#grow(request, request.computed + chunk);
      if (added === undefined) {
        this.#preempt(request);
        continue;
      }
      const newBlockIds = added[0]!.length > 0 ? added : null;
      cached.push({ reqId: request.id, resumed: false, newBlockIds, numComputedTokens: request.computed });
      scheduled.set(request.id, chunk);
    }
    for (const request of this.#requests) {
      if (request.phase === "waiting") this.#lookUp(request);
      if (request.phase !== "ready") continue;
      if (request.computed === request.numTokens) request.computed--;
      const chunk = this.#chunk(request);
      if (this.#grow(request, request.computed + chunk) === undefined) continue;
      this.scheduler.updateStateAfterAlloc(request.view(), request.tables, 0);
      const data = { reqId: request.id, blockIds: request.tables, numComputedTokens: request.computed };
      if (request.resumes)
        cached.push({ ...data, resumed: true, newBlockIds: request.tables.map((table) => [...table]) });
      else fresh.push(data);
      scheduled.set(request.id, chunk);
      request.phase = "running";
      request.progressed = this.#step;
    }
    return { fresh, cached, scheduled };
  }

  #chunk({ computed, numTokens }: ModelRequest): number {
    return Math.min(numTokens - computed, this.#random.int(8, 48));
  }

  #lookUp(request: ModelRequest): void {
    const [offered] = this.scheduler.getNumNewMatchedTokens(request.view(), request.computed);
    if (offered === null) return;
    assert.ok(
      Number.isSafeInteger(offered) && offered >= 0 && offered <= request.numTokens,
      `${offered} tokens were offered to a request of ${request.numTokens}`,
    );
    assert.equal(offered % BLOCK_TOKENS, 0);
    request.phase = "ready";
    if (offered === 0 || this.#random.chance(0.05)) return;
    if (this.#grow(request, offered) === undefined) {
      request.phase = "waiting";
      return;
    }
    this.scheduler.updateStateAfterAlloc(request.view(), request.tables, offered);
    request.phase = "loading";
    request.progressed = this.#step;
    this.#loads.push({
      request,
      tables: request.tables,
      hitLength: offered,
      ranks: new Set(this.workers.keys()),
      lost: new Set(),
      failed: false,
      orphaned: false,
      since: this.#step,
    });
  }

  #takeJobs({ requests }: MooncakeStoreConnectorMetadata, loads: readonly ModelLoad[]): void {
    assert.deepEqual(
      requests.filter(({ loadSpec }) => loadSpec?.canLoad).map(({ reqId }) => reqId),
      loads.map(({ request }) => request.id),
      "every load is handed out once",
    );
    for (const { canSave, storeJobId } of requests) {
      if (!canSave) continue;
      assert.ok(!this.#jobs.has(storeJobId!));
      this.#jobs.set(storeJobId!, { ranks: new Set(this.workers.keys()), since: this.#step });
      this.#note("store jobs");
    }
  }

  /** The model computes; the device writes when it comes to it. */
  #compute(scheduled: ReadonlyMap<string, number>): void {
    for (const request of [...this.#requests]) {
      const chunk = scheduled.get(request.id);
      if (chunk === undefined) continue;
      const { family, computed, tables } = request;
      const first = Math.floor(computed / BLOCK_TOKENS);
      const end = Math.ceil((computed + chunk) / BLOCK_TOKENS);
      let written = false;
      this.#unwritten.push(() => {
        if (written) return;
        written = true;
        for (const [rank, memory] of this.#memories.entries())
          for (const [group, table] of tables.entries())
            for (let index = first; index < end; index++)
              memory.block(table[index]!).set(rightBytes(family, index, group, rank));
      });
      request.computed += chunk;
      request.progressed = this.#step;
      if (request.computed < request.numTokens) continue;
      if (request.numTokens >= request.lastTokens) this.#toFinish.push(request);
      else request.numTokens = Math.min(request.lastTokens, request.numTokens + this.#random.int(1, 8));
    }
  }

  readonly #toFinish: ModelRequest[] = [];

  #writeAll(): void {
    for (const write of this.#unwritten.splice(0)) write();
    for (const request of this.#toFinish.splice(0))
      if (this.#requests.includes(request)) this.#finish(request);
  }

  #fence(): () => void | Promise<void> {
    const writes = [...this.#unwritten];
    const write = () => {
      for (const each of writes) each();
    };
    const kind = this.storm
      ? this.#random.weighted({ now: 5, later: 10, throws: 1, rejects: 1, hangs: 1 })
      : "later";
    return () => {
      if (kind === "throws") throw new Error("thrown by the fence");
      if (kind === "rejects") return Promise.reject(new Error("rejected by the fence"));
      if (kind === "hangs") return new Promise(() => {});
      if (kind === "now") return write();
      return new Promise((resolve) => setImmediate(resolve)).then(write);
    };
  }

  /** The end of a step: what the workers report, and what the scheduler makes of it. */
  #collect(meta: MooncakeStoreConnectorMetadata, finished: readonly string[]): void {
    const completed = new Map<number, number>();
    for (const [rank, worker] of this.workers.entries()) {
      const { finishedRecving, failedRecving } = worker.getTransferResults(finished, meta);
      const lost = worker.getBlockIdsWithLoadErrors();
      for (const reqId of failedRecving)
        assert.ok(finishedRecving.has(reqId), `${reqId} has failed, but has not ended`);
      const reported = new Set<string>();
      for (const load of this.#loads) {
        for (const blockId of load.tables.flat()) if (lost.has(blockId)) load.lost.add(blockId);
        // The report is about all loads under this id that the rank has not reported yet.
        if (!finishedRecving.has(load.request.id) || !load.ranks.delete(rank)) continue;
        reported.add(load.request.id);
        load.failed ||= failedRecving.has(load.request.id);
        this.#checkFilled(load, rank);
      }
      for (const reqId of finishedRecving)
        assert.ok(
          this.#loads.some(({ request }) => request.id === reqId),
          `${reqId} loads nothing`,
        );
      for (const [storeJobId, count] of worker.buildConnectorWorkerMeta()?.completedSaves ?? []) {
        assert.ok(this.#jobs.get(storeJobId)?.ranks.delete(rank), `job ${storeJobId} was reported twice`);
        assert.equal(count, 1);
        completed.set(storeJobId, (completed.get(storeJobId) ?? 0) + 1);
      }
      this.#checkOffsets(rank, worker);
    }
    this.#loads = this.#loads.filter((load) => load.ranks.size > 0 || this.#loaded(load));
    this.#report(completed);
    for (const [storeJobId, { ranks }] of this.#jobs) if (ranks.size === 0) this.#jobs.delete(storeJobId);
    assert.deepEqual(
      this.scheduler.pinnedSaves.map(({ storeJobId, remaining }) => [storeJobId, remaining]),
      Array.from(this.#jobs, ([storeJobId, { ranks }]) => [storeJobId, ranks.size]),
      "the scheduler holds the blocks of other jobs than those that are open",
    );
  }

  /** Hands the reports in, now and then with lies among them: then they must be refused, and nothing may have changed. */
  #report(completed: ReadonlyMap<number, number>): void {
    const events = this.#events.reports(this.workers, this.storm);
    if (this.storm && this.#random.chance(0.1)) {
      const { lie, needed } = impossibleReport(
        this.#random,
        completed,
        this.scheduler.pinnedSaves,
        this.#events,
      );
      if (needed)
        try {
          this.scheduler.updateConnectorOutput(lie.meta, lie.events);
          assert.fail(`${lie.name} was taken in`);
        } catch (error) {
          if (!isMooncakeKvError(error)) throw error;
          this.#note("reports refused");
        }
    }
    const unknown = this.#random.chance(0.1) ? [[1_000_000, this.#random.int(1, 9)] as const] : [];
    this.scheduler.updateConnectorOutput({ completedSaves: new Map([...completed, ...unknown]) }, events);
    this.#note("events", this.#events.check(this.scheduler.takeEvents()));
  }

  /** Every block of a load is right, or was said not to be. */
  #checkFilled({ request, tables, hitLength, lost, failed, orphaned }: ModelLoad, rank: number): void {
    if (orphaned || failed) return;
    for (const [group, table] of tables.entries())
      for (let index = 0; index < hitLength / BLOCK_TOKENS; index++) {
        if (lost.has(table[index]!)) continue;
        const bytes = this.#memories[rank]!.block(table[index]!);
        const right = Buffer.compare(bytes, rightBytes(request.family, index, group, rank)) === 0;
        assert.ok(
          right,
          `block ${index} of group ${group} of ${request.id} on rank ${rank} counts as filled: ${bytes}`,
        );
        this.#note("blocks filled");
      }
  }

  /** A load that all ranks have ended. */
  #loaded({ request, tables, hitLength, lost, failed, orphaned }: ModelLoad): false {
    if (orphaned) {
      this.#pool.give(tables.flat());
      return false;
    }
    const whole = tables[0]!.slice(0, hitLength / BLOCK_TOKENS);
    const first = tables.reduce((least, table) => {
      const index = table.findIndex((blockId) => lost.has(blockId));
      return index < 0 ? least : Math.min(least, index);
    }, whole.length);
    request.computed = failed ? 0 : first * BLOCK_TOKENS;
    request.phase = "ready";
    request.progressed = this.#step;
    this.#note(failed || first < whole.length ? "loads with losses" : "whole loads");
    return false;
  }

  /** Everything up to the offset of a request was stored, or existed: the store has said so. */
  #checkOffsets(rank: number, worker: MooncakeStoreWorker): void {
    for (const [reqId, offset] of worker.snapshot()!.savedOffsets) {
      if (this.#offsets.get(`${rank}/${reqId}`) === offset) continue;
      this.#offsets.set(`${rank}/${reqId}`, offset);
      const request = this.#requests.find(({ id }) => id === reqId);
      if (request === undefined) continue;
      for (let group = 0; group < this.#groups; group++)
        for (const hash of request.view().blockHashes.slice(0, offset / BLOCK_TOKENS)) {
          const key = `m@tp_rank:${rank}@pcp0@dcp0@pp_rank:0@group:${group}@${Buffer.from(hash).toString("hex")}`;
          assert.ok(this.store.acknowledged.has(key), `${key} counts as stored`);
        }
    }
  }

  /** A lookup, whose result must follow from what the store has said in it. */
  async #watchedLookup(numTokens: number, hashes: BlockHashSequence): Promise<LookupResult> {
    const log: LookupLog = new Map();
    const open = { since: this.#step };
    this.#openLookups.add(open);
    const result = await this.store.watchLookup(log, () => this.workers[0]!.lookup(numTokens, hashes));
    this.#openLookups.delete(open);
    if (result.failure) return result;
    const answers = (index: number) =>
      [...log].filter(([key]) => key.endsWith(`@${Buffer.from(hashes.at(index)!).toString("hex")}`));
    const blocks = result.hitLength / BLOCK_TOKENS;
    for (let index = 0; index < blocks; index++) {
      const all = answers(index);
      if (all.length !== this.#groups * this.workers.length || all.some(([, answer]) => answer !== 1))
        this.store.violations.push(`a lookup counts block ${index} as stored; the store said ${all}`);
    }
    const last = Math.floor((numTokens - 1) / BLOCK_TOKENS);
    if (blocks < last && !answers(blocks).some(([, answer]) => answer === 0))
      this.store.violations.push(`a lookup counts block ${blocks} as absent; the store has not said so`);
    return result;
  }

  #checkBounds(): void {
    assert.deepEqual(this.store.violations, []);
    for (const { id, progressed, phase } of this.#requests)
      assert.ok(this.#step - progressed < BOUND, `request ${id} hangs: ${phase}`);
    for (const { request, since } of this.#loads)
      assert.ok(this.#step - since < BOUND, `a load of ${request.id} does not end`);
    for (const [storeJobId, { since }] of this.#jobs)
      assert.ok(this.#step - since < BOUND, `job ${storeJobId} does not end`);
    for (const { since } of this.#openLookups)
      assert.ok(this.#step - since < BOUND, "a lookup of a worker does not end");
    if (this.#reset) assert.ok(this.#step - this.#reset.since < BOUND, "a reset does not end");
  }

  #maybeReset(): void {
    if (this.#reset !== undefined || !this.#random.chance(0.003)) return;
    const emptied = this.store.timesEmptied;
    const answer = this.scheduler.resetCache();
    this.#events.clear();
    const done = answer.then((empty) => {
      if (empty) assert.ok(this.store.timesEmptied > emptied, "the store was not emptied");
      this.#reset = undefined;
      this.#note(empty ? "resets" : "failed resets");
    });
    this.#reset = { since: this.#step, done };
  }

  #logger(): ConnectorLogger {
    const trouble = (): undefined | Promise<never> => {
      const kind = this.storm ? this.#random.weighted({ fine: 2, throws: 1, rejects: 1 }) : "fine";
      if (kind === "throws") throw new Error("thrown by the logger");
      return kind === "rejects" ? Promise.reject(new Error("rejected by the logger")) : undefined;
    };
    return { warn: trouble, info: trouble };
  }

  #note(what: string, count: number = 1): void {
    this.seen[what] = (this.seen[what] ?? 0) + count;
  }
}
