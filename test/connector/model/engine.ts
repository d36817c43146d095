import assert from "node:assert/strict";
import { isMooncakeKvError } from "../../../src/errors.js";
import type { MooncakeStoreConnectorMetadata } from "../../../src/request/connector-metadata.js";
import { output } from "../../../src/testing/connector/scheduler-harness.js";
import { ModelBatch } from "./batch.js";
import { ModelPool } from "./block-pool.js";
import { checkBounds, checkFilled, OffsetCheck, type OpenJob } from "./checks.js";
import type { VirtualClock } from "./clock.js";
import { ModelDevice } from "./device.js";
import { EventLedger } from "./event-ledger.js";
import { impossibleReport } from "./impossible-reports.js";
import type { ModelRequest } from "./model-request.js";
import { type ConnectorParts, connectorParts, WORKER_LIMITS } from "./parts.js";
import type { Random } from "./random.js";
import { NUM_BLOCKS } from "./truth.js";
import { BOUND, type Seen, World } from "./world.js";

/**
 * A whole little engine: requests arrive, are looked up, loaded, computed in chunks, saved, preempted, aborted and end, on
 * one or two ranks, over a store, a lookup client, a logger and a fence that do their worst. After every step it compares
 * what it was told with what is so.
 */
export class ModelEngine {
  readonly #world: World;
  readonly #parts: ConnectorParts;
  readonly #pool: ModelPool;
  readonly #device: ModelDevice;
  readonly #batch: ModelBatch;
  readonly #events: EventLedger;
  readonly #offsets: OffsetCheck;
  readonly #jobs = new Map<number, OpenJob>();
  /** Requests that end with the step. */
  readonly #complete: ModelRequest[] = [];
  #reset: { readonly since: number; readonly done: Promise<void> } | undefined;

  constructor(clock: VirtualClock, random: Random, seen: Seen) {
    const world = new World(clock, random, seen);
    this.#world = world;
    this.#pool = new ModelPool((blockId) => {
      for (const memory of world.memories) memory.block(blockId).fill(0xee);
    });
    this.#parts = connectorParts(world, this.#pool);
    this.#device = new ModelDevice(world);
    this.#batch = new ModelBatch(world, this.#parts.scheduler, this.#pool);
    this.#events = new EventLedger(world.memories.length, world.groups, random);
    this.#offsets = new OffsetCheck(world);
  }

  /** Requests, loads and jobs that have not ended. */
  get open(): number {
    return this.#batch.requests.length + this.#batch.loads.length + this.#jobs.size;
  }

  /** Whether faults happen from now on. */
  set storm(storm: boolean) {
    this.#world.storm = storm;
    this.#world.store.stormy = storm;
    this.#parts.client.dishonesty = storm ? 0.12 : 0;
  }

  /** Registers the caches of all ranks, each twice at once: one of the two must be refused. */
  async register(): Promise<void> {
    const done = this.#parts.workers.map(async (worker, rank) => {
      const tensors = this.#world.memories[rank]!.tensors();
      const both = await Promise.allSettled([
        worker.registerKvCaches(tensors, NUM_BLOCKS),
        worker.registerKvCaches(tensors, NUM_BLOCKS),
      ]);
      const outcomes = both.map(({ status }) => status);
      assert.deepEqual(outcomes, ["fulfilled", "rejected"], "of two registrations at once one is refused");
    });
    await this.#within(Promise.all(done), "the registration");
  }

  /** One step of the engine. */
  async step(arrivals: boolean): Promise<void> {
    const batch = this.#batch;
    this.#world.step++;
    await this.#world.clock.pass(this.#world.random.int(1, 4));
    this.#endStep();
    if (arrivals) batch.arrive();
    batch.disturb();
    const { fresh, cached, tokens } = batch.schedule();
    const { finished, preempted } = batch.takeChanges();
    const meta = this.#parts.scheduler.buildConnectorMeta(
      output({
        new: fresh,
        cached,
        scheduled: Object.fromEntries(tokens),
        finished,
        preempted,
        tables: Object.fromEntries(batch.requests.map(({ id, tables }) => [id, tables])),
      }),
    );
    this.#takeJobs(meta);
    for (const worker of this.#parts.workers) worker.startLoadKv(meta);
    this.#compute(tokens);
    for (const worker of this.#parts.workers) worker.waitForSave(meta, this.#device.fence());
    this.#collect(meta, finished);
    this.#maybeReset();
  }

  /**
   * Closes the workers in the middle of everything, which takes no longer than it may, and lets them report the rest. What
   * still waits goes away with the engine.
   */
  async breakOff(): Promise<void> {
    const { clock } = this.#world;
    const before = performance.now();
    await this.#within(Promise.all(this.#parts.workers.map((worker) => worker.close())), "close");
    const took = performance.now() - before;
    assert.ok(took <= 2 * WORKER_LIMITS.closeMs + 4, `close took ${took} ms`);
    this.#endStep();
    for (const request of [...this.#batch.requests]) this.#batch.abort(request);
    const { finished } = this.#batch.takeChanges();
    const nothing = this.#parts.scheduler.buildConnectorMeta(output({ finished }));
    while (this.open > 0) {
      this.#world.step++;
      await clock.pass(1);
      this.#collect(nothing, []);
    }
    this.#world.note("engines closed in the middle");
  }

  /** Ends a life: nothing may be left. */
  async end(): Promise<void> {
    const { store, clock } = this.#world;
    const { scheduler, workers, lookups, watched, client } = this.#parts;
    await this.#within(Promise.resolve(this.#reset?.done), "a reset");
    for (const worker of workers) assert.deepEqual([...worker.snapshot()!.liveJobs.values()].flat(), []);
    assert.deepEqual([...this.#pool.connectorReferences], [], "block references that never came back");
    assert.equal(this.#pool.engineBlocks, 0);
    assert.equal(scheduler.hasPendingPushWork(), false);
    assert.deepEqual([...scheduler.loadSpecs], []);
    assert.deepEqual([...lookups.pending], []);
    const { failed, refused } = scheduler.lookupCounts;
    assert.equal(failed, client.said.failures, "failed lookups were counted otherwise");
    assert.equal(refused, client.said.impossible, "impossible answers were counted otherwise");
    for (const [name, count] of Object.entries(scheduler.lookupCounts))
      this.#world.note(`lookups: ${name}`, count);
    for (const [mood, count] of Object.entries(store.moods)) this.#world.note(`store: ${mood}`, count);
    await this.#within(Promise.all(workers.map((worker) => worker.close())), "close");
    // A registration or a put that was given up may still come, and every lookup has ended.
    await clock.pass(300);
    assert.equal(watched.open.size, 0, "lookups of a worker that do not end");
    assert.deepEqual([...store.registered], [], "memory stayed registered");
    assert.deepEqual([...store.owed], [], "objects of puts that were given up");
    assert.deepEqual(store.violations, []);
  }

  /** Lets time pass until something is done, and no longer than anything may take. */
  async #within<T>(work: Promise<T>, what: string): Promise<T> {
    let done = false;
    const note = (): void => {
      done = true;
    };
    work.then(note, note);
    for (let i = 0; i < BOUND && !done; i++) await this.#world.clock.pass(1);
    assert.ok(done, `${what} does not end`);
    return work;
  }

  #endStep(): void {
    this.#device.finish();
    for (const request of this.#complete.splice(0))
      if (this.#batch.requests.includes(request)) this.#batch.finish(request);
  }

  #takeJobs({ requests }: MooncakeStoreConnectorMetadata): void {
    const { step, ranks } = this.#world;
    assert.deepEqual(
      requests.filter(({ loadSpec }) => loadSpec?.canLoad).map(({ reqId }) => reqId),
      this.#batch.loads.filter(({ since }) => since === step).map(({ request }) => request.id),
      "every load is handed out once",
    );
    for (const { canSave, storeJobId } of requests) {
      if (!canSave) continue;
      assert.ok(!this.#jobs.has(storeJobId!));
      this.#jobs.set(storeJobId!, { ranks: new Set(ranks), since: step });
    }
  }

  #compute(tokens: ReadonlyMap<string, number>): void {
    for (const request of this.#batch.requests) {
      const chunk = tokens.get(request.id);
      if (chunk === undefined) continue;
      this.#device.compute(request, request.computed, request.computed + chunk);
      request.computed += chunk;
      request.progressed = this.#world.step;
      if (request.computed < request.numTokens) continue;
      if (request.numTokens >= request.lastTokens) this.#complete.push(request);
      else request.numTokens = Math.min(request.lastTokens, request.numTokens + this.#world.random.int(1, 8));
    }
  }

  /** The end of a step: what the workers report, and what the scheduler makes of it. */
  #collect(meta: MooncakeStoreConnectorMetadata, finished: readonly string[]): void {
    const batch = this.#batch;
    const completed = new Map<number, number>();
    for (const [rank, worker] of this.#parts.workers.entries()) {
      const { finishedRecving, failedRecving } = worker.getTransferResults(finished, meta);
      const lost = worker.getBlockIdsWithLoadErrors();
      for (const reqId of failedRecving)
        assert.ok(finishedRecving.has(reqId), `${reqId} has failed, but has not ended`);
      const reported = new Set<string>();
      for (const load of batch.loads) {
        for (const blockId of load.tables.flat()) if (lost.has(blockId)) load.lost.add(blockId);
        // The report is about all loads under this id that the rank has not reported yet.
        if (!finishedRecving.has(load.request.id) || !load.ranks.delete(rank)) continue;
        reported.add(load.request.id);
        load.failed ||= failedRecving.has(load.request.id);
        checkFilled(this.#world, load, rank);
      }
      assert.deepEqual([...reported].sort(), [...finishedRecving].sort(), "loads that had ended before");
      for (const [storeJobId, count] of worker.buildConnectorWorkerMeta()?.completedSaves ?? []) {
        assert.ok(this.#jobs.get(storeJobId)?.ranks.delete(rank), `job ${storeJobId} was reported twice`);
        assert.equal(count, 1);
        completed.set(storeJobId, (completed.get(storeJobId) ?? 0) + 1);
      }
      this.#offsets.check(rank, worker, batch.requests);
    }
    for (const load of batch.loads) if (load.ranks.size === 0) batch.loaded(load);
    batch.loads = batch.loads.filter(({ ranks }) => ranks.size > 0);
    this.#report(completed);
    for (const [storeJobId, { ranks }] of this.#jobs) if (ranks.size === 0) this.#jobs.delete(storeJobId);
    assert.deepEqual(
      this.#parts.scheduler.pinnedSaves.map(({ storeJobId, remaining }) => [storeJobId, remaining]),
      Array.from(this.#jobs, ([storeJobId, { ranks }]) => [storeJobId, ranks.size]),
      "the scheduler holds the blocks of other jobs than those that are open",
    );
    const lookups = this.#parts.watched.open;
    checkBounds(this.#world, { batch, jobs: this.#jobs, lookups, reset: this.#reset });
  }

  /** Hands the reports in, now and then with a lie among them: then they must be refused, and nothing may have changed. */
  #report(completed: ReadonlyMap<number, number>): void {
    const { random, storm } = this.#world;
    const { scheduler, workers } = this.#parts;
    const events = this.#events.reports(workers, storm);
    const lie = storm && random.chance(0.1);
    const lies = lie ? impossibleReport(random, completed, scheduler.pinnedSaves, this.#events) : undefined;
    if (lies)
      try {
        scheduler.updateConnectorOutput(lies.meta, lies.events);
        assert.fail(`${lies.name} was taken in`);
      } catch (error) {
        if (!isMooncakeKvError(error)) throw error;
        this.#world.note("reports refused");
      }
    const unknown = random.chance(0.1) ? [[1_000_000, random.int(1, 9)] as const] : [];
    scheduler.updateConnectorOutput({ completedSaves: new Map([...completed, ...unknown]) }, events);
    this.#world.note("events", this.#events.check(scheduler.takeEvents()));
  }

  #maybeReset(): void {
    const { random, store, step } = this.#world;
    if (this.#reset !== undefined || !random.chance(0.003)) return;
    const emptied = store.timesEmptied;
    const answer = this.#parts.scheduler.resetCache();
    this.#events.clear();
    const done = answer.then((empty) => {
      if (empty && store.timesEmptied === emptied) store.violations.push("the store was not emptied");
      this.#reset = undefined;
      this.#world.note(empty ? "resets" : "failed resets");
    });
    this.#reset = { since: step, done };
  }
}
