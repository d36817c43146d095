import type { BlockStored } from "../events/kv-events.js";
import type { SegmentTable } from "../layout/segment-table.js";
import { requestError } from "../request/checks.js";
import type { ReqMeta } from "../request/req-meta.js";
import type { PutOptions } from "../store/shared/call-options.js";
import { CODE } from "../store/shared/codes.js";
import { storedBlocks } from "./block-stored.js";
import { boundaryRows } from "./boundary-rows.js";
import { chunkHashOfKey, makeMooncakeGroupId } from "./group-id.js";
import { JobQueue } from "./job-queue.js";
import { SaveLedger, type TokenRange } from "./save-ledger.js";
import { type SaveGroups, saveRows } from "./save-rows.js";
import { type ConnectorLogger, type CountedStore, failedPositions } from "./store-calls.js";
import { segmentsOfRows } from "./store-rows.js";

/** The code that says that the store has no room. */
export const MOONCAKE_NO_AVAILABLE_HANDLE: typeof CODE.NO_AVAILABLE_HANDLE = CODE.NO_AVAILABLE_HANDLE;

/** Events that are kept while nobody asks for them. */
const MOST_EVENTS = 65_536;

/** Waits until the memory that jobs read holds what they are to store: vLLM's CUDA event. */
export type SaveFence = () => void | Promise<void>;

/** What the save side of a worker works with. */
export interface SavePipelineOptions extends SaveGroups {
  readonly store: CountedStore;
  readonly putOptions: PutOptions;
  /** Whether each object is put with the group of its chunk. */
  readonly groupIds: boolean;
  readonly enableKvEvents: boolean;
  readonly useIntBlockHashes: boolean;
  /** Jobs that may wait. */
  readonly capacity: number;
  readonly logger: ConnectorLogger | undefined;
}

interface QueuedSave {
  readonly job: ReqMeta;
  readonly storeJobId: number;
  readonly fence: SaveFence | undefined;
}

/** Objects that may be missing in the store. */
interface Candidates {
  readonly keys: readonly string[];
  readonly groupIds: readonly number[];
  segments(positions: readonly number[]): SegmentTable;
}

/** What storing objects came to. */
interface PutOutcome {
  /** Positions of the objects that were missing. */
  readonly put: readonly number[];
  /** Those among them that failed, counted within `put`. */
  readonly failed: ReadonlySet<number>;
  /** Whether the put itself failed, so that nothing is known of its objects. */
  readonly raised: boolean;
}

/**
 * Stores what jobs say, one after the other: asks which objects are missing, and puts those. Every job is reported once,
 * whatever becomes of it, and none throws. What failed stays due: the next job of the request begins where the last one
 * succeeded. Mirrors vLLM's `KVCacheStoreSendingThread`.
 */
export class SavePipeline {
  readonly ledger: SaveLedger = new SaveLedger();
  readonly #options: SavePipelineOptions;
  readonly #queue: JobQueue<QueuedSave>;
  #events: BlockStored[] = [];

  constructor(options: SavePipelineOptions) {
    this.#options = options;
    this.#queue = new JobQueue((save) => this.#run(save), 1, options.capacity);
  }

  /** Jobs that wait or run. */
  get size(): number {
    return this.#queue.size;
  }

  /** Resolves once no job waits or runs. */
  drained(): Promise<void> {
    return this.#queue.drained();
  }

  /**
   * Adds a job. Where there is no room it is reported at once, without having stored anything: the next one of the
   * request does its work too.
   *
   * @throws MooncakeKvError `ERR_REQUEST` for a job without an id.
   */
  add(job: ReqMeta, fence: SaveFence | undefined): void {
    const { reqId, storeJobId } = job;
    if (storeJobId === null)
      throw requestError(`a job of request ${reqId} has no storeJobId, so nobody could be told of its end`, {
        reqId,
      });
    this.ledger.begin(reqId, storeJobId);
    if (this.#queue.push({ job, storeJobId, fence })) return;
    this.#warn("too many store jobs wait; this one stores nothing", { reqId, storeJobId });
    this.ledger.finish(reqId, storeJobId);
  }

  /** The blocks stored since the last call. */
  takeEvents(): BlockStored[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  async #run({ job, storeJobId, fence }: QueuedSave): Promise<void> {
    const { coordinator, enableKvEvents } = this.#options;
    const { schedulerBlockSize } = coordinator;
    const tokenLen = job.tokenLenChunk - (job.tokenLenChunk % schedulerBlockSize);
    let completed = false;
    let tokens = jobTokens(job);
    try {
      if (!this.ledger.isLive(job)) return;
      if (enableKvEvents) tokens = joined(this.ledger.retryTokens(job), tokens);
      if (this.ledger.isPaused(job.reqId)) return;
      if (!(await this.#saveBoundaries(job, fence)) || tokenLen === 0) return;
      completed = await this.#saveChunks(job, tokenLen, tokens, fence);
    } catch (error) {
      this.#warn("a store job failed", { reqId: job.reqId, storeJobId, error });
    } finally {
      if (enableKvEvents && tokenLen > 0) this.ledger.updateRetryTokens(job, completed, tokens);
      this.ledger.finish(job.reqId, storeJobId);
    }
  }

  /** Whether the job may go on: nothing was to be stored, or all of it is. */
  async #saveBoundaries(job: ReqMeta, fence: SaveFence | undefined): Promise<boolean> {
    if (!job.boundaryPuts?.length || job.blockHashes.length === 0) return true;
    const rows = boundaryRows(this.#options, job);
    if (rows.keys.length === 0) return true;
    try {
      const outcome = await this.#putMissing(job, rows, fence);
      return !outcome.raised && outcome.failed.size === 0;
    } catch (error) {
      this.#warn("boundary states could not be stored", { reqId: job.reqId, error });
      return false;
    }
  }

  /** Whether everything that could be stored up to `tokenLen` is. */
  async #saveChunks(
    job: ReqMeta,
    tokenLen: number,
    tokens: TokenRange | undefined,
    fence: SaveFence | undefined,
  ): Promise<boolean> {
    const { databases, enableKvEvents, useIntBlockHashes } = this.#options;
    const { ledger } = this;
    const { rows, due } = saveRows(
      this.#options,
      job,
      ledger.savedOffset(job.reqId),
      tokenLen,
      ledger.dueChunks(job.reqId),
    );
    if (rows.length === 0) {
      ledger.recordSaved(job, tokenLen, due);
      return true;
    }
    const pick = (positions: readonly number[]) => positions.map((position) => rows[position]!);
    const candidates = {
      keys: rows.map(({ key }) => key),
      groupIds: rows.map(({ groupId }) => groupId),
      segments: (positions: readonly number[]) => segmentsOfRows(pick(positions), databases, job.blockIds),
    };
    const { put, failed, raised } = await this.#putMissing(job, candidates, fence);
    const completed = !raised && failed.size === 0;
    if (completed) ledger.recordSaved(job, tokenLen, due);
    if (enableKvEvents && !raised)
      this.#addEvents(storedBlocks(pick(put), failed, databases, job, tokens, useIntBlockHashes));
    return completed;
  }

  /**
   * Puts the objects that are missing. Rejects when the store can't even be asked for them, but not when the put fails.
   */
  async #putMissing(job: ReqMeta, candidates: Candidates, fence: SaveFence | undefined): Promise<PutOutcome> {
    const { store, putOptions, groupIds } = this.#options;
    const exists = await store.exists("save_exists", candidates.keys);
    const put: number[] = [];
    for (let i = 0; i < candidates.keys.length; i++) if (exists[i] !== 1) put.push(i);
    if (put.length === 0) return { put, failed: new Set(), raised: false };
    const keys = put.map((position) => candidates.keys[position]!);
    const segments = candidates.segments(put);
    await fence?.();
    const options = groupIds ? { ...putOptions, groupIds: this.#groupIds(candidates, put) } : putOptions;
    try {
      const codes = await store.put(keys, segments, options);
      const failed = failedPositions(codes);
      this.#notePressure(job, keys, codes, failed);
      return { put, failed, raised: false };
    } catch (error) {
      this.#warn("a put failed", { reqId: job.reqId, keys: keys.length, firstKey: keys[0], error });
      return { put, failed: new Set(), raised: true };
    }
  }

  #notePressure(
    job: ReqMeta,
    keys: readonly string[],
    codes: ArrayLike<number>,
    failed: ReadonlySet<number>,
  ): void {
    if (failed.size === 0) {
      this.ledger.clearPressure();
      return;
    }
    const distinct = [...new Set([...failed].map((position) => codes[position]!))];
    this.#warn("some objects could not be stored", {
      reqId: job.reqId,
      failed: failed.size,
      keys: keys.length,
      codes: distinct,
      firstKey: keys[[...failed][0]!],
    });
    if (distinct.includes(MOONCAKE_NO_AVAILABLE_HANDLE)) this.ledger.markPressure(job);
  }

  #addEvents(events: readonly BlockStored[]): void {
    for (const event of events) this.#events.push(event);
    const lost = this.#events.length - MOST_EVENTS;
    if (lost <= 0) return;
    this.#events.splice(0, lost);
    this.#warn("nobody takes the events of stored blocks; the oldest are dropped", { lost });
  }

  #groupIds({ keys, groupIds }: Candidates, positions: readonly number[]): string[] {
    return positions.map((position) =>
      makeMooncakeGroupId(
        this.#options.databases[groupIds[position]!]!.metadata,
        chunkHashOfKey(keys[position]!),
      ),
    );
  }

  #warn(message: string, details: Readonly<Record<string, unknown>>): void {
    this.#options.logger?.warn(message, details);
  }
}

function jobTokens({ tokenIds, tokenIdsStart }: ReqMeta): TokenRange | undefined {
  return tokenIds === null ? undefined : { start: tokenIdsStart, tokenIds };
}

/** The tokens of failed jobs and of this one as one range, where they meet. */
function joined(before: TokenRange | undefined, tokens: TokenRange | undefined): TokenRange | undefined {
  if (before === undefined || tokens === undefined) return tokens;
  if (before.start + before.tokenIds.length !== tokens.start) return tokens;
  return { start: before.start, tokenIds: [...before.tokenIds, ...tokens.tokenIds] };
}
