import type { ConnectorConfig } from "../../../connector/connector-config.js";
import { MooncakeStoreScheduler } from "../../../connector/scheduler/mooncake-store-scheduler.js";
import { PendingLookups } from "../../../connector/scheduler/pending-lookups.js";
import type { CachedRequestData, NewRequestData } from "../../../connector/scheduler/scheduler-output.js";
import type { BlockHasher } from "../../../hash/block-hasher.js";
import { MooncakeStoreWorkerMetadata } from "../../../request/worker-metadata.js";
import type { KvStore } from "../../../store/kv-store.js";
import { type DemoModel, hybridCacheGroups } from "../model.js";
import { DemoBlockPool } from "./block-pool.js";
import { BlockTables } from "./block-tables.js";
import { DemoRequest } from "./demo-request.js";
import { HybridRank } from "./hybrid-rank.js";
import { TurnMeter } from "./turn-meter.js";

/** Tokens that an engine computes in one step. */
const MAX_BATCHED_TOKENS = 512;
/** Loads of one request that may fail before the engine computes everything itself. */
const MOST_LOADS = 3;
/** A window of the sliding layers is kept every so many tokens, so that other prompts can meet there. */
const RETENTION_INTERVAL = 256;

/** How an engine is built. */
export interface HybridEngineOptions {
  readonly store: KvStore;
  readonly model: DemoModel;
  readonly hasher: BlockHasher;
  readonly tpSize: number;
  /** Blocks of its KV cache, the null block among them. */
  readonly numBlocks: number;
  /** What keeps its keys apart from those of other runs. */
  readonly cachePrefix: string;
}

/** What an engine is to do for one request. */
export interface Turn {
  readonly requestId: string;
  readonly prompt: readonly number[];
  /** What the model says. */
  readonly answer: readonly number[];
  /** Tokens of the answer after which the request loses its blocks, once. */
  readonly preemptAfter?: number | undefined;
  /** Called between the first lookup and the load of what it found. */
  readonly beforeLoad?: ((request: DemoRequest, offered: number) => Promise<void>) | undefined;
}

/**
 * An engine without a model: one scheduler side, one worker side a TP rank, and the steps that vLLM would take for one
 * request at a time. It keeps nothing between requests, so that every hit comes from the store.
 */
export class HybridEngine {
  readonly ranks: readonly HybridRank[];
  readonly #options: HybridEngineOptions;
  readonly #pool: DemoBlockPool;
  readonly #lookups: PendingLookups;
  readonly #scheduler: MooncakeStoreScheduler;
  #meter: TurnMeter = new TurnMeter();
  #finished: string[] = [];
  #preempted: string[] = [];

  private constructor(options: HybridEngineOptions, ranks: readonly HybridRank[]) {
    this.#options = options;
    this.ranks = ranks;
    this.#pool = new DemoBlockPool(options.numBlocks);
    this.#lookups = new PendingLookups(ranks[0]!.worker);
    this.#scheduler = new MooncakeStoreScheduler({
      config: connectorConfig(options),
      lookupClient: this.#lookups,
      blockPool: this.#pool,
    });
  }

  /** Allocates and registers the caches of all ranks. */
  static async create(options: HybridEngineOptions): Promise<HybridEngine> {
    const { store, model, tpSize, numBlocks } = options;
    const ranks: HybridRank[] = [];
    try {
      for (let tpRank = 0; tpRank < tpSize; tpRank++) {
        const { model: name, numKvHeads } = model;
        const own = { model: name, numKvHeads, tpSize, tpRank, cacheLayout: "LBHNC" as const };
        const config = { ...connectorConfig(options), ...own };
        ranks.push(await HybridRank.create({ store, model, config, numBlocks }));
      }
      return new HybridEngine(options, ranks);
    } catch (error) {
      for (const rank of ranks) await rank.close();
      throw error;
    }
  }

  /** Serves one request to its end, until everything of it is stored. */
  async run(turn: Turn): Promise<TurnMeter> {
    const meter = new TurnMeter();
    this.#meter = meter;
    const tables = new BlockTables(this.#pool, this.#options.model);
    const request = new DemoRequest(turn.requestId, turn.prompt, this.#options.hasher, tables);
    await this.#admit(request, turn.beforeLoad);
    await this.#compute(request);
    for (const [index, token] of turn.answer.entries()) {
      if (index === turn.preemptAfter) {
        await this.#preempt(request);
        await this.#admit(request);
      }
      request.append([token]);
      await this.#compute(request);
    }
    meter.differences += await this.#verify(request);
    await this.#finish(request);
    meter.end(this.ranks);
    return meter;
  }

  /** Gives the caches back. */
  async close(): Promise<void> {
    for (const rank of this.ranks) await rank.close();
  }

  /** Asks what the store has, and loads it. What can't be loaded is asked for again, then computed. */
  async #admit(request: DemoRequest, beforeLoad?: Turn["beforeLoad"]): Promise<void> {
    for (let attempt = 0; attempt < MOST_LOADS; attempt++) {
      const offered = await this.#lookup(request);
      if (offered > 0 && attempt === 0) await beforeLoad?.(request, offered);
      const loaded = offered === 0 || (await this.#load(request, offered));
      this.#meter.admissions.push({ tokens: request.numTokens, hitTokens: offered, loaded });
      if (loaded) return;
    }
    this.#meter.admissions.push({ tokens: request.numTokens, hitTokens: 0, loaded: true });
  }

  async #lookup(request: DemoRequest): Promise<number> {
    return this.#meter.time("lookup", async () => {
      for (;;) {
        const [offered] = this.#scheduler.getNumNewMatchedTokens(request, 0);
        if (offered !== null) return offered;
        await this.#lookups.settled();
      }
    });
  }

  /** Whether every block of a hit was filled, on every rank. */
  async #load(request: DemoRequest, offered: number): Promise<boolean> {
    const { requestId, tables } = request;
    this.#grow(request, offered, offered);
    this.#scheduler.updateStateAfterAlloc(request, tables.blockIds, offered);
    const loaded = await this.#meter.time("load", async () => {
      await this.#step({});
      await this.#drained();
      return !(await this.#step({})).failed.has(requestId);
    });
    if (!loaded) {
      tables.free();
      return false;
    }
    request.numComputedTokens = offered;
    this.#meter.loaded(tables.blockIds, this.ranks, this.#options);
    this.#meter.differences += await this.#verify(request);
    return true;
  }

  /** Computes what is not computed yet, step by step. */
  async #compute(request: DemoRequest): Promise<void> {
    const { requestId, tables } = request;
    while (request.numComputedTokens < request.numTokens) {
      const start = request.numComputedTokens;
      const end = Math.min(request.numTokens, start + MAX_BATCHED_TOKENS);
      const newBlockIds = this.#grow(request, start, end);
      const { blockIds } = tables;
      const data = { reqId: requestId, numComputedTokens: start };
      if (!request.scheduled) this.#scheduler.updateStateAfterAlloc(request, blockIds, 0);
      await this.#step({
        ...(request.scheduled
          ? { cached: { ...data, resumed: false, newBlockIds } }
          : request.preempted
            ? { cached: { ...data, resumed: true, newBlockIds: blockIds } }
            : { new: { ...data, blockIds } }),
        request,
        scheduled: end - start,
        compute: async () => {
          for (const rank of this.ranks) await rank.compute(request.allTokenIds, blockIds, { start, end });
        },
      });
      request.scheduled = true;
      request.numComputedTokens = end;
      this.#meter.computedTokens += end - start;
    }
  }

  /** Takes the blocks of a request away, once what it has saved is stored. */
  async #preempt(request: DemoRequest): Promise<void> {
    await this.#drained();
    request.tables.free();
    request.numComputedTokens = 0;
    request.scheduled = false;
    request.preempted = true;
    this.#preempted.push(request.requestId);
    await this.#step({});
  }

  async #finish(request: DemoRequest): Promise<void> {
    this.#scheduler.requestFinished(request, request.tables.blockIds);
    request.tables.free();
    this.#finished.push(request.requestId);
    do {
      await this.#drained();
      await this.#step({});
    } while (this.#scheduler.hasPendingPushWork());
  }

  #grow(request: DemoRequest, numComputed: number, numTokens: number): number[][] | null {
    const grown = request.tables.grow(numComputed, numTokens);
    for (const rank of this.ranks) rank.poison(grown?.flat().filter((blockId) => blockId !== 0) ?? []);
    return grown;
  }

  async #verify({ allTokenIds, tables, numComputedTokens }: DemoRequest): Promise<number> {
    let differences = 0;
    for (const rank of this.ranks)
      differences += await rank.verify(allTokenIds, tables.blockIds, numComputedTokens);
    return differences;
  }

  async #drained(): Promise<void> {
    for (const { worker } of this.ranks) await worker.drained();
  }

  /** One step of the engine; returns the requests of which some rank could not load a block. */
  async #step(step: Step): Promise<{ readonly failed: ReadonlySet<string> }> {
    const { request } = step;
    const finishedReqIds = this.#finished.splice(0);
    const metadata = this.#scheduler.buildConnectorMeta({
      scheduledNewReqs: step.new ? [step.new] : [],
      scheduledCachedReqs: step.cached ? [step.cached] : [],
      numScheduledTokens: new Map(request ? [[request.requestId, step.scheduled ?? 0]] : []),
      finishedReqIds,
      preemptedReqIds: this.#preempted.splice(0),
      kvConnectorBlockState: {
        blockTables: new Map(request ? [[request.requestId, request.tables.blockIds]] : []),
      },
    });
    this.#meter.count(metadata);
    for (const { worker } of this.ranks) worker.startLoadKv(metadata);
    await step.compute?.();
    const failed = new Set<string>();
    const reports = new MooncakeStoreWorkerMetadata();
    for (const { worker } of this.ranks) {
      worker.waitForSave(metadata);
      const { failedRecving } = worker.getTransferResults(finishedReqIds, metadata);
      for (const reqId of failedRecving) failed.add(reqId);
      const report = worker.buildConnectorWorkerMeta();
      if (report !== null) reports.aggregate(report);
    }
    this.#scheduler.updateConnectorOutput(reports);
    return { failed };
  }
}

/** What a step schedules: nothing, or one request. */
interface Step {
  readonly request?: DemoRequest | undefined;
  readonly new?: NewRequestData | undefined;
  readonly cached?: CachedRequestData | undefined;
  /** Tokens of the request in this step. */
  readonly scheduled?: number | undefined;
  /** The model's work. */
  readonly compute?: (() => Promise<void>) | undefined;
}

function connectorConfig({ model, tpSize, cachePrefix }: HybridEngineOptions): ConnectorConfig {
  return {
    kvRole: "kv_both",
    kvCacheGroups: hybridCacheGroups(model),
    blockSize: model.blockSize,
    retentionInterval: RETENTION_INTERVAL,
    worldSize: tpSize,
    extraConfig: { cache_prefix: cachePrefix },
  };
}
