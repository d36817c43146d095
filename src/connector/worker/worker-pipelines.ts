import type { CallLimitOptions } from "../call-limit.js";
import type { WorkerTimeLimits } from "../time-limits.js";
import type { ConnectorLogger } from "../user-callbacks.js";
import { DEFAULT_DISK_STAGING_USABLE_RATIO, usableDiskOffloadBufferBudgetBytes } from "./disk-staging.js";
import { LoadPipeline } from "./load-pipeline.js";
import { SavePipeline } from "./save-pipeline.js";
import type { CountedStore } from "./store-calls.js";
import type { WorkerSettings } from "./worker-config.js";
import type { MooncakeStoreWorkerOptions } from "./worker-options.js";

/** What the pipelines of a worker share. */
export interface PipelineSurroundings {
  readonly settings: WorkerSettings;
  readonly options: MooncakeStoreWorkerOptions;
  readonly store: CountedStore;
  readonly limits: WorkerTimeLimits;
  /** Aborted when the worker closes: no job asks the store for anything from then on. */
  readonly signal: AbortSignal;
  readonly logger: Required<ConnectorLogger>;
}

/** The pipeline that stores; undefined for a worker that does not save. The worker must have groups. */
export function savePipeline(surroundings: PipelineSurroundings): SavePipeline | undefined {
  const { settings, options, limits } = surroundings;
  if (!settings.canPut) return undefined;
  return new SavePipeline({
    ...common(surroundings, limits.saveMs),
    putSteps: settings.groups!.replicationFactors,
    putOptions: options.preferredSegment ? { preferredSegments: [options.preferredSegment] } : {},
    groupIds: settings.enableGroupSemantics && options.supportsGroupIds !== false,
    enableKvEvents: settings.enableKvEvents,
    useIntBlockHashes: options.useIntBlockHashes ?? true,
    capacity: options.maxQueuedSaves ?? 4096,
  });
}

/** The pipeline that loads. The worker must have groups. */
export function loadPipeline(surroundings: PipelineSurroundings): LoadPipeline {
  const { settings, options, limits } = surroundings;
  const budget = options.diskOffloadBufferBudgetBytes;
  const ratio = options.diskStagingUsableRatio ?? DEFAULT_DISK_STAGING_USABLE_RATIO;
  return new LoadPipeline({
    ...common(surroundings, limits.loadMs),
    byRequest: settings.isHmaRequired,
    diskBudget:
      budget === undefined
        ? undefined
        : { raw: budget, usable: usableDiskOffloadBufferBudgetBytes(budget, ratio) },
    tierLog: options.tierLog ?? false,
    runners: Math.max(1, options.recvThreads ?? 1),
    capacity: options.maxQueuedLoads ?? 4096,
  });
}

function common({ settings, store, limits, signal, logger }: PipelineSurroundings, ms: number) {
  const limit: CallLimitOptions = { ms, graceMs: limits.graceMs, signal };
  return {
    coordinator: settings.coordinator!,
    databases: settings.groups!.databases,
    tpRank: settings.tpRank,
    store,
    logger,
    limit,
  };
}
