import assert from "node:assert/strict";
import type * as FastCheck from "fast-check";
import type { ConnectorConfig } from "../../connector/connector-config.js";
import { MooncakeStoreScheduler } from "../../connector/scheduler/mooncake-store-scheduler.js";
import type { StoreRequest } from "../../connector/scheduler/store-request.js";
import { isMooncakeKvError } from "../../errors.js";
import type { MooncakeStoreConnectorMetadata } from "../../request/connector-metadata.js";
import { CountingPool, FULL, HYBRID, output, request, ToldClient } from "../connector/scheduler-harness.js";
import fc from "../fast-check.js";

// Laws of the scheduler side under any events, in any order, also such as no engine sends. The model knows nothing of
// requests: only which jobs were handed out, and which ranks have reported them.

const IDS = ["a", "b", "c"] as const;
type Id = (typeof IDS)[number];

/** What must be true of jobs and blocks. */
interface Model {
  /** Ranks that have not reported yet, of every job that was ever handed out. */
  readonly remaining: Map<number, number>;
  readonly jobIds: number[];
  /** Jobs that hold blocks until all ranks have reported them. */
  readonly holding: Set<number>;
}

/** A call that succeeded: how to do it again, and what came of it. */
interface LoggedCall {
  readonly again: (scheduler: MooncakeStoreScheduler, client: ToldClient) => unknown;
  readonly result: string;
}

/** A scheduler that notes the calls that succeed. */
class LoggedScheduler extends MooncakeStoreScheduler {
  readonly log: LoggedCall[] = [];
  readonly #client: ToldClient;

  constructor(config: ConnectorConfig, lookupClient: ToldClient, blockPool: CountingPool) {
    super({ config, lookupClient, blockPool });
    this.#client = lookupClient;
  }

  override getNumNewMatchedTokens(
    ...args: Parameters<MooncakeStoreScheduler["getNumNewMatchedTokens"]>
  ): ReturnType<MooncakeStoreScheduler["getNumNewMatchedTokens"]> {
    const { reply } = this.#client;
    const result = super.getNumNewMatchedTokens(...args);
    return this.#note(result, (scheduler, client) => {
      client.reply = reply;
      return scheduler.getNumNewMatchedTokens(...args);
    });
  }

  override updateStateAfterAlloc(
    ...args: Parameters<MooncakeStoreScheduler["updateStateAfterAlloc"]>
  ): ReturnType<MooncakeStoreScheduler["updateStateAfterAlloc"]> {
    super.updateStateAfterAlloc(...args);
    this.#note(null, (scheduler) => scheduler.updateStateAfterAlloc(...args) ?? null);
  }

  override buildConnectorMeta(
    ...args: Parameters<MooncakeStoreScheduler["buildConnectorMeta"]>
  ): ReturnType<MooncakeStoreScheduler["buildConnectorMeta"]> {
    return this.#note(super.buildConnectorMeta(...args), (scheduler) =>
      scheduler.buildConnectorMeta(...args),
    );
  }

  override updateConnectorOutput(
    ...args: Parameters<MooncakeStoreScheduler["updateConnectorOutput"]>
  ): ReturnType<MooncakeStoreScheduler["updateConnectorOutput"]> {
    super.updateConnectorOutput(...args);
    this.#note(null, (scheduler) => scheduler.updateConnectorOutput(...args) ?? null);
  }

  override registerFinishedPartialTail(
    ...args: Parameters<MooncakeStoreScheduler["registerFinishedPartialTail"]>
  ): ReturnType<MooncakeStoreScheduler["registerFinishedPartialTail"]> {
    return this.#note(super.registerFinishedPartialTail(...args), (scheduler) =>
      scheduler.registerFinishedPartialTail(...args),
    );
  }

  override resetCache(): ReturnType<MooncakeStoreScheduler["resetCache"]> {
    this.#note(null, (scheduler) => {
      void scheduler.resetCache();
      return null;
    });
    return super.resetCache();
  }

  #note<T>(result: T, again: LoggedCall["again"]): T {
    this.log.push({ again, result: shown(result) });
    return result;
  }
}

function shown(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => (member instanceof Set ? [...member].sort() : member));
}

/** The scheduler and what it acts on. */
interface Real {
  readonly scheduler: LoggedScheduler;
  readonly pool: CountingPool;
  readonly client: ToldClient;
  readonly numWorkers: number;
  readonly requests: Map<Id, StoreRequest>;
  /** Requests that an honest engine would have running. */
  readonly running: Set<Id>;
}

/** What has to be the same after a call that threw. */
function visibleState({ scheduler, pool }: Real): unknown {
  return {
    pinned: scheduler.pinnedSaves,
    loadSpecs: [...scheduler.loadSpecs].sort(([a], [b]) => (a < b ? -1 : 1)),
    references: [...pool.references].sort(([a], [b]) => a - b),
  };
}

/** A call that may be illegal: then it throws an error of ours, and nothing has happened. */
class Command implements FastCheck.Command<Model, Real> {
  readonly #text: string;
  readonly #call: (model: Model, real: Real) => void;
  readonly #prepare: ((real: Real) => void) | undefined;

  /** @param prepare calls that are sure to succeed, and come first. */
  constructor(text: string, call: (model: Model, real: Real) => void, prepare?: (real: Real) => void) {
    this.#text = text;
    this.#call = call;
    this.#prepare = prepare;
  }

  check(): boolean {
    return true;
  }

  run(model: Model, real: Real): void {
    this.#prepare?.(real);
    const before = visibleState(real);
    try {
      this.#call(model, real);
    } catch (error) {
      if (!isMooncakeKvError(error)) throw error;
      assert.deepEqual(visibleState(real), before, "a call that throws must change nothing");
    }
    checkReferences(model, real);
  }

  toString(): string {
    return this.#text;
  }
}

/**
 * Each block has exactly one reference from each open job that holds it, only jobs hold references, and a job is open
 * until all ranks have reported it.
 */
function checkReferences({ remaining, holding }: Model, { scheduler, pool }: Real): void {
  const open = scheduler.pinnedSaves.map(({ storeJobId }) => storeJobId);
  assert.deepEqual(
    open,
    [...holding].filter((storeJobId) => remaining.get(storeJobId)! > 0),
  );
  const expected = new Map<number, number>();
  for (const { storeJobId, blockIds, remaining: left } of scheduler.pinnedSaves) {
    assert.equal(left, remaining.get(storeJobId), `reports missing of job ${storeJobId}`);
    assert.equal(new Set(blockIds).size, blockIds.length);
    for (const blockId of blockIds) expected.set(blockId, (expected.get(blockId) ?? 0) + 1);
  }
  assert.deepEqual(
    [...pool.references].sort(([a], [b]) => a - b),
    [...expected].sort(([a], [b]) => a - b),
  );
  assert.equal(scheduler.hasPendingPushWork(), scheduler.pinnedSaves.length > 0);
}

function takeJobs(model: Model, real: Real, meta: MooncakeStoreConnectorMetadata): void {
  for (const job of meta.requests) {
    assert.ok(!(job.canSave && job.loadSpec?.canLoad), "a job saves or loads");
    if (!job.canSave) continue;
    assert.notEqual(job.storeJobId, null);
    assert.ok(!model.jobIds.includes(job.storeJobId!), `job ${job.storeJobId} was handed out twice`);
    model.jobIds.push(job.storeJobId!);
    openJob(model, real, job.storeJobId!);
  }
}

function openJob(model: Model, { scheduler, numWorkers }: Real, storeJobId: number): void {
  if (model.remaining.has(storeJobId)) return;
  model.remaining.set(storeJobId, numWorkers);
  if (scheduler.pinnedSaves.some((job) => job.storeJobId === storeJobId)) model.holding.add(storeJobId);
}

const id = fc.constantFrom(...IDS);
const blockId = fc.integer({ min: 0, max: 9 });
const table = fc.array(blockId, { maxLength: 5 });
const blockIds = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(table, table) },
  { weight: 1, arbitrary: fc.array(table, { minLength: 1, maxLength: 3 }) },
);
const tokens = fc.integer({ min: 0, max: 70 });

/** A Mamba state: mostly of the Mamba group, and at few boundaries, so that several agree. */
const state = fc.tuple(fc.constantFrom(1, 1, 1, 0, 2), blockId, fc.constantFrom(4, 8, 16, 16, 20, 32));

const rarely = <T>(ids: FastCheck.Arbitrary<T[]>): FastCheck.Arbitrary<T[]> =>
  fc.oneof({ weight: 3, arbitrary: fc.constant<T[]>([]) }, { weight: 1, arbitrary: ids });

const live = ({ requests }: Real, reqId: Id): StoreRequest => requests.get(reqId) ?? request(reqId, 35);

const grow = fc.record({ reqId: id, prompt: tokens, generated: fc.nat(20), computed: tokens }).map(
  ({ reqId, prompt, generated, computed }) =>
    new Command(`request(${reqId}, ${prompt}+${generated}, computed ${computed})`, (_, real) => {
      const numTokens = prompt + generated;
      const options = { numTokens, computed: Math.min(computed, numTokens), hashBlockSize: 4 };
      real.requests.set(reqId, request(reqId, prompt, options));
    }),
);

/** Mostly one that can be. */
const hit = fc.oneof(
  { weight: 4, arbitrary: fc.nat(4).map((blocks) => blocks * 16) },
  { weight: 1, arbitrary: tokens },
);

const lookup = fc.record({ reqId: id, computed: tokens, hit: fc.option(hit) }).map(
  ({ reqId, computed, hit: found }) =>
    new Command(`lookup(${reqId}, computed ${computed}) = ${found}`, (_, real) => {
      real.client.reply = found === null ? null : { hitLength: found, tailKeyBoundaries: [] };
      const [needed] = real.scheduler.getNumNewMatchedTokens(live(real, reqId), computed);
      assert.ok(needed === null || needed >= 0);
    }),
);

const alloc = fc
  .record({ reqId: id, blockIds, external: fc.oneof(fc.constant(0), fc.constant("offered"), tokens) })
  .map(
    ({ reqId, blockIds: table, external }) =>
      new Command(`alloc(${reqId}, ${JSON.stringify(table)}, ${external})`, (_, real) => {
        const spec = real.scheduler.loadSpecs.get(reqId);
        const offered = spec ? spec.kvpoolCachedTokens - spec.vllmCachedTokens : 0;
        const count = external === "offered" ? offered : (external as number);
        real.scheduler.updateStateAfterAlloc(live(real, reqId), table, count);
      }),
  );

const scheduledRequest = fc.record({
  reqId: id,
  how: fc.constantFrom("honest", "honest", "honest", "honest", "new", "resumed", "running"),
  blockIds: fc.option(blockIds),
  computed: tokens,
  scheduled: tokens,
  prefill: fc.option(tokens),
});

const build = fc
  .record({
    requests: fc.uniqueArray(scheduledRequest, { maxLength: 3, selector: ({ reqId }) => reqId }),
    finished: rarely(fc.subarray([...IDS], { maxLength: 1 })),
    preempted: rarely(fc.subarray([...IDS], { maxLength: 1 })),
    tables: fc.array(fc.tuple(id, blockIds), { maxLength: 4 }),
    offloads: fc.array(fc.tuple(id, fc.array(state, { maxLength: 2 })), { maxLength: 1 }),
    withBlockState: fc.nat(9).map((n) => n > 0),
  })
  .map(
    (step) =>
      new Command(
        `step(${JSON.stringify(step)})`,
        (model, real) => {
          const requests = step.requests.map((each) =>
            each.how === "honest" ? { ...each, how: real.running.has(each.reqId) ? "running" : "new" } : each,
          );
          const by = (how: string) => requests.filter((each) => each.how === how);
          const cached = (resumed: boolean) =>
            by(resumed ? "resumed" : "running").map(({ reqId, blockIds: newBlockIds, computed }) => ({
              reqId,
              resumed,
              newBlockIds,
              numComputedTokens: computed,
            }));
          // An engine knows the tables of what it schedules; now and then one is wrong or missing all the same.
          const tables = requests.map(({ reqId, blockIds: table }) => [reqId, table ?? [[1], [2]]] as const);
          const meta = real.scheduler.buildConnectorMeta(
            output({
              new: by("new").map(({ reqId, blockIds: table, computed, prefill }) => ({
                reqId,
                blockIds: table ?? [[1], [2]],
                numComputedTokens: computed,
                numPrefillTokens: prefill,
              })),
              cached: [...cached(true), ...cached(false)],
              scheduled: Object.fromEntries(requests.map(({ reqId, scheduled }) => [reqId, scheduled])),
              finished: step.finished,
              preempted: step.preempted,
              tables: Object.fromEntries([...tables, ...step.tables]),
              offloads: Object.fromEntries(step.offloads),
              noBlockState: !step.withBlockState,
            }),
          );
          takeJobs(model, real, meta);
          for (const { reqId } of requests) real.running.add(reqId);
          for (const reqId of [...step.finished, ...step.preempted]) real.running.delete(reqId);
        },
        (real) => {
          for (const { how, reqId } of step.requests)
            if (how === "honest" && !real.running.has(reqId))
              real.scheduler.updateStateAfterAlloc(live(real, reqId), [[1], [2]], 0);
        },
      ),
  );

const report = fc.array(fc.tuple(fc.nat(12), fc.integer({ min: 1, max: 3 })), { maxLength: 3 }).map(
  (reports) =>
    new Command(`report(${JSON.stringify(reports)})`, (model, real) => {
      const completedSaves = new Map(reports);
      real.scheduler.updateConnectorOutput({ completedSaves });
      for (const [job, count] of completedSaves)
        if (model.remaining.has(job)) model.remaining.set(job, model.remaining.get(job)! - count);
    }),
);

const finish = fc
  .record({
    reqId: id,
    blockIds,
    offloads: fc.array(state, { maxLength: 2 }),
  })
  .map(
    ({ reqId, blockIds: table, offloads }) =>
      new Command(`finish(${reqId}, ${JSON.stringify([table, offloads])})`, (model, real) => {
        const { scheduler } = real;
        assert.equal(scheduler.registerFinishedPartialTail(live(real, reqId), table, offloads), false);
        for (const { storeJobId } of scheduler.pinnedSaves) openJob(model, real, storeJobId);
      }),
  );

const reset = fc.constant(
  new Command("reset()", (_, { scheduler }) => {
    void scheduler.resetCache();
    assert.equal(scheduler.loadSpecs.size, 0);
  }),
);

/** Any events, in any order. */
export function schedulerCommands(): FastCheck.Arbitrary<Iterable<FastCheck.Command<Model, Real>>> {
  return fc.commands([grow, lookup, alloc, alloc, build, build, build, report, report, finish, reset], {
    maxCommands: 24,
    size: "max",
  });
}

const configs: FastCheck.Arbitrary<ConnectorConfig> = fc
  .record({
    base: fc.constantFrom(FULL, HYBRID),
    kvRole: fc.constantFrom("kv_both" as const, "kv_producer" as const, "kv_consumer" as const),
    worldSize: fc.constantFrom(1, 2),
    enableKvEvents: fc.boolean(),
    useEagle: fc.boolean(),
    saveDecodeCache: fc.boolean(),
  })
  .map(({ base, saveDecodeCache, ...rest }) => ({
    ...base,
    ...rest,
    extraConfig: { save_decode_cache: saveDecodeCache },
  }));

/**
 * No events, legal or not, corrupt anything: every block is referenced exactly by the jobs that hold it, each job is
 * handed out once and counted once, and when all ranks have reported, nothing is held.
 */
export function jobsAndBlocksAreCountedOnce(): FastCheck.IProperty<unknown[]> {
  return forAnyEvents(({ scheduler, pool }) => {
    for (const { storeJobId, remaining } of scheduler.pinnedSaves)
      scheduler.updateConnectorOutput({ completedSaves: new Map([[storeJobId, remaining]]) });
    assert.equal(pool.references.size, 0);
    assert.equal(scheduler.hasPendingPushWork(), false);
    assert.deepEqual(pool.freed.length, pool.touched.length);
  });
}

/** A call that throws has changed nothing: without these calls all others come to the same. */
export function failedCallsChangeNothing(): FastCheck.IProperty<unknown[]> {
  return forAnyEvents(({ scheduler }, config) => {
    const client = new ToldClient();
    const twin = new MooncakeStoreScheduler({ config, lookupClient: client, blockPool: new CountingPool() });
    for (const { again, result } of scheduler.log) assert.equal(shown(again(twin, client)), result);
    assert.deepEqual(twin.pinnedSaves, scheduler.pinnedSaves);
  });
}

function forAnyEvents(check: (real: Real, config: ConnectorConfig) => void): FastCheck.IProperty<unknown[]> {
  return fc.property(configs, schedulerCommands(), (config, commands) => {
    const pool = new CountingPool();
    const client = new ToldClient();
    const scheduler = new LoggedScheduler(config, client, pool);
    const numWorkers = config.worldSize!;
    const real: Real = { scheduler, pool, client, numWorkers, requests: new Map(), running: new Set() };
    fc.modelRun(
      () => ({ model: { remaining: new Map(), jobIds: [], holding: new Set<number>() }, real }),
      commands,
    );
    check(real, config);
  });
}
