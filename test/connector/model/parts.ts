import { MooncakeStoreScheduler } from "../../../src/connector/scheduler/mooncake-store-scheduler.js";
import { PendingLookups } from "../../../src/connector/scheduler/pending-lookups.js";
import type { WorkerTimeLimits } from "../../../src/connector/time-limits.js";
import { MooncakeStoreWorker } from "../../../src/connector/worker/mooncake-store-worker.js";
import type { ModelPool } from "./block-pool.js";
import { COPY_MS } from "./faulty-store.js";
import { LyingClient } from "./lying-client.js";
import { BLOCK_TOKENS } from "./truth.js";
import { WatchedLookups } from "./watched-lookups.js";
import type { World } from "./world.js";

/** Milliseconds that the model lets things take; small, so that many are given up. */
export const WORKER_LIMITS: WorkerTimeLimits = {
  loadMs: 24,
  saveMs: 30,
  graceMs: COPY_MS + 6,
  lookupMs: 8,
  resetMs: 60,
  registerMs: 20,
  closeMs: 6,
};
const SCHEDULER_LIMITS = { lookupMs: 20, resetMs: 400 };

/** The connector of an engine, and what it asks. */
export interface ConnectorParts {
  readonly workers: readonly MooncakeStoreWorker[];
  readonly watched: WatchedLookups;
  readonly lookups: PendingLookups;
  readonly client: LyingClient;
  readonly scheduler: MooncakeStoreScheduler;
}

/** A connector of random shape: one or two ranks and groups, small queues, loads in parts, with or without events. */
export function connectorParts(world: World, blockPool: ModelPool): ConnectorParts {
  const { random, ranks } = world;
  const config = {
    kvRole: "kv_both" as const,
    blockSize: BLOCK_TOKENS,
    kvCacheGroups: Array.from({ length: world.groups }, (_, group) => ({
      kvCacheSpec: { kind: "full" as const, blockSize: BLOCK_TOKENS, headSize: 16 * (group + 1) },
    })),
    worldSize: ranks.length,
    enableKvEvents: random.chance(0.7),
    extraConfig: { save_decode_cache: random.chance(0.5), lookup_async: true },
  };
  const options = {
    store: world.store,
    recvThreads: random.int(1, 3),
    maxQueuedLoads: random.chance(0.2) ? 1 : 100,
    maxQueuedSaves: random.chance(0.2) ? 1 : 100,
    diskOffloadBufferBudgetBytes: random.chance(0.3) ? 30_000 : undefined,
    tierLog: random.chance(0.3),
    timeLimits: WORKER_LIMITS,
    logger: world.logger(),
  };
  const own = { ...config, model: "m", numKvHeads: 8, tpSize: ranks.length };
  const workers = ranks.map((tpRank) => new MooncakeStoreWorker({ ...options, config: { ...own, tpRank } }));
  const watched = new WatchedLookups(world, workers[0]!);
  const lookups = new PendingLookups(watched, { timeoutMs: 50 });
  const client = new LyingClient(lookups, random);
  // Without a limit of the scheduler side that of its client has to do.
  client.maySayNothing = random.chance(0.7);
  const lookupMs = client.maySayNothing ? SCHEDULER_LIMITS.lookupMs : 1_000_000;
  const scheduler = new MooncakeStoreScheduler({
    config,
    lookupClient: client,
    blockPool,
    timeLimits: { ...SCHEDULER_LIMITS, lookupMs },
    logger: world.logger(),
  });
  return { workers, watched, lookups, client, scheduler };
}
