import type { MooncakeLookupResult } from "../../../generated/typescript/index.js";
import type { ConnectorConfig } from "../../connector/connector-config.js";
import type { BlockPool } from "../../connector/scheduler/block-pool.js";
import type { LookupClient } from "../../connector/scheduler/lookup-client.js";
import { MooncakeStoreScheduler } from "../../connector/scheduler/mooncake-store-scheduler.js";
import type {
  BlockIds,
  CachedRequestData,
  NewRequestData,
  SchedulerOutput,
} from "../../connector/scheduler/scheduler-output.js";
import type { StoreRequest } from "../../connector/scheduler/store-request.js";
import type { BoundaryPutTuple } from "../../request/boundary-put.js";

/** A pool that counts references, and refuses to give back what nobody holds. */
export class CountingPool implements BlockPool {
  readonly references: Map<number, number> = new Map();
  readonly touched: number[] = [];
  readonly freed: number[] = [];

  touch(blockIds: readonly number[]): void {
    for (const blockId of blockIds) {
      if (blockId === 0) throw new Error("the null block was touched");
      this.references.set(blockId, (this.references.get(blockId) ?? 0) + 1);
      this.touched.push(blockId);
    }
  }

  freeBlocks(blockIds: readonly number[]): void {
    for (const blockId of blockIds) {
      const count = this.references.get(blockId) ?? 0;
      if (count === 0) throw new Error(`block ${blockId} was given back twice`);
      if (count === 1) this.references.delete(blockId);
      else this.references.set(blockId, count - 1);
      this.freed.push(blockId);
    }
  }
}

/** A lookup client that answers what it is told. */
export class ToldClient implements LookupClient {
  reply: MooncakeLookupResult | null = { hitLength: 0, tailKeyBoundaries: [] };
  calls = 0;
  readonly discarded: string[] = [];

  lookupAsync(): MooncakeLookupResult | null {
    this.calls++;
    return this.reply;
  }

  discard(reqId: string): void {
    this.discarded.push(reqId);
  }

  reset(): boolean {
    return true;
  }
}

/** Hash `index` of a request. */
export function hashOf(base: number, index: number): Uint8Array {
  return Uint8Array.from([base, index >> 8, index & 255, 7]);
}

/** A request of `numTokens` tokens, of which `numPromptTokens` are the prompt; token i is i. */
export function request(
  requestId: string,
  numPromptTokens: number,
  options: {
    readonly numTokens?: number | undefined;
    readonly computed?: number | undefined;
    readonly hashBlockSize?: number | undefined;
  } = {},
): StoreRequest {
  const { numTokens = numPromptTokens, computed = 0, hashBlockSize = 16 } = options;
  return {
    requestId,
    numPromptTokens,
    numTokens,
    numComputedTokens: computed,
    blockHashes: Array.from({ length: Math.floor(numTokens / hashBlockSize) }, (_, index) =>
      hashOf(requestId.charCodeAt(0), index),
    ),
    allTokenIds: Array.from({ length: numTokens }, (_, index) => index),
  };
}

/** A step of the engine; what is left out is empty. */
export function output(step: {
  readonly new?: readonly NewRequestData[] | undefined;
  readonly cached?: readonly CachedRequestData[] | undefined;
  readonly scheduled?: Readonly<Record<string, number>> | undefined;
  readonly finished?: readonly string[] | undefined;
  readonly preempted?: readonly string[] | undefined;
  readonly tables?: Readonly<Record<string, BlockIds>> | undefined;
  readonly offloads?: Readonly<Record<string, readonly BoundaryPutTuple[]>> | undefined;
  readonly noBlockState?: boolean | undefined;
}): SchedulerOutput {
  return {
    scheduledNewReqs: step.new ?? [],
    scheduledCachedReqs: step.cached ?? [],
    numScheduledTokens: new Map(Object.entries(step.scheduled ?? {})),
    finishedReqIds: step.finished ?? [],
    preemptedReqIds: step.preempted ?? [],
    kvConnectorBlockState: step.noBlockState
      ? null
      : {
          blockTables: new Map(Object.entries(step.tables ?? {})),
          boundaryStateOffloads: new Map(Object.entries(step.offloads ?? {})),
        },
  };
}

/** One full-attention group of 16 tokens. */
export const FULL: ConnectorConfig = {
  kvRole: "kv_both",
  blockSize: 16,
  kvCacheGroups: [{ kvCacheSpec: { kind: "full", blockSize: 16 } }],
};

/** Full attention and Mamba with hits at every fourth token. */
export const HYBRID: ConnectorConfig = {
  kvRole: "kv_both",
  blockSize: 16,
  prefixMatchUnit: 4,
  kvCacheGroups: [
    { kvCacheSpec: { kind: "full", blockSize: 16 } },
    { kvCacheSpec: { kind: "mamba", blockSize: 16, mambaCacheMode: "align" } },
  ],
};

/** A scheduler with a counting pool and a client that answers what it is told. */
export function scheduler(config: Partial<ConnectorConfig> = {}): {
  readonly scheduler: MooncakeStoreScheduler;
  readonly pool: CountingPool;
  readonly client: ToldClient;
} {
  const pool = new CountingPool();
  const client = new ToldClient();
  const made = new MooncakeStoreScheduler({
    config: { ...FULL, ...config },
    lookupClient: client,
    blockPool: pool,
  });
  return { scheduler: made, pool, client };
}
