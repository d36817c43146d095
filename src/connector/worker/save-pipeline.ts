import type { BlockStored } from "../../events/kv-events.js";
import type { SegmentTable } from "../../layout/segment-table.js";
import { checkCount, requestError } from "../../request/checks.js";
import type { ReqMeta } from "../../request/req-meta.js";
import type { PutOptions } from "../../store/shared/call-options.js";
import { CODE } from "../../store/shared/codes.js";
import { CallLimit, type CallLimitOptions } from "../call-limit.js";
import type { ConnectorLogger } from "../user-callbacks.js";
import { storedBlocks } from "./block-stored.js";
import { boundaryRows } from "./boundary-rows.js";
import { chunkHashOfKey, makeMooncakeGroupId } from "./group-id.js";
import { JobQueue } from "./job-queue.js";
import { SaveLedger, type TokenRange } from "./save-ledger.js";
import { type SaveGroups, saveRows } from "./save-rows.js";
import type { CountedStore, TransferAnswer } from "./store-calls.js";
import { segmentsOfRows } from "./store-rows.js";

/** The code that says that the store has no room. */
export const MOONCAKE_NO_AVAILABLE_HANDLE: typeof CODE.NO_AVAILABLE_HANDLE = CODE.NO_AVAILABLE_HANDLE;

/** Events that are kept while nobody asks for them. */
const MOST_EVENTS = 65_536;

/**
 * Waits until the memory that jobs read holds what they are to store: vLLM's CUDA event. A job whose fence throws, or
 * says nothing while the job has time, stores nothing.
 */
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
  /** The time of one job, the wait for others and its fence included. */
  readonly limit: CallLimitOptions;
  /** Must never throw. */
  readonly logger: Required<ConnectorLogger>;
}

interface QueuedSave {
  readonly job: ReqMeta;
  readonly storeJobId: number;
  readonly fence: SaveFence | undefined;
  readonly limit: CallLimit;
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
 * whatever becomes of it, and none throws. It is reported when the store is done with its blocks, or after so long a
 * silence that nothing more is to be expected: blocks that never come back would stop the engine. What failed stays due:
 * the next job of the request begins where the last one succeeded. Mirrors vLLM's `KVCacheStoreSendingThread`.
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
    const { reqId } = job;
    const storeJobId = checkedJobId(job);
    if (!this.ledger.begin(reqId, storeJobId)) {
      this.#options.logger.warn("a store job was handed in twice; it runs once", { reqId, storeJobId });
      return;
    }
    if (this.#queue.push({ job, storeJobId, fence, limit: new CallLimit(this.#options.limit) })) return;
    this.ledger.finish(reqId, storeJobId);
    this.#options.logger.warn("too many store jobs wait; this one stores nothing", { reqId, storeJobId });
  }

  /** The blocks stored since the last call. */
  takeEvents(): BlockStored[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  async #run(save: QueuedSave): Promise<void> {
    const { job, storeJobId, limit } = save;
    const { coordinator, enableKvEvents } = this.#options;
    const { schedulerBlockSize } = coordinator;
    const tokenLen = job.tokenLenChunk - (job.tokenLenChunk % schedulerBlockSize);
    let completed = false;
    let tokens = jobTokens(job);
    try {
      if (!this.ledger.isLive(job)) return;
      if (enableKvEvents) tokens = joined(this.ledger.retryTokens(job), tokens);
      if (this.ledger.isPaused(job.reqId)) return;
      if (!(await this.#saveBoundaries(save)) || tokenLen === 0) return;
      completed = await this.#saveChunks(save, tokenLen, tokens);
    } catch (error) {
      this.#options.logger.warn("a store job failed", { reqId: job.reqId, storeJobId, error });
    } finally {
      limit.end();
      if (enableKvEvents && tokenLen > 0) this.ledger.updateRetryTokens(job, completed, tokens);
      this.ledger.finish(job.reqId, storeJobId);
    }
  }

  /** Whether the job may go on: nothing was to be stored, or all of it is. */
  async #saveBoundaries(save: QueuedSave): Promise<boolean> {
    const { job } = save;
    if (!job.boundaryPuts?.length || job.blockHashes.length === 0) return true;
    const rows = boundaryRows(this.#options, job);
    if (rows.keys.length === 0) return true;
    try {
      const outcome = await this.#putMissing(save, rows);
      return !outcome.raised && outcome.failed.size === 0;
    } catch (error) {
      this.#options.logger.warn("boundary states could not be stored", { reqId: job.reqId, error });
      return false;
    }
  }

  /** Whether everything that could be stored up to `tokenLen` is. */
  async #saveChunks(save: QueuedSave, tokenLen: number, tokens: TokenRange | undefined): Promise<boolean> {
    const { job } = save;
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
    const { put, failed, raised } = await this.#putMissing(save, candidates);
    const completed = !raised && failed.size === 0;
    if (completed) ledger.recordSaved(job, tokenLen, due);
    if (enableKvEvents && !raised)
      this.#addEvents(storedBlocks(pick(put), failed, databases, job, tokens, useIntBlockHashes));
    return completed;
  }

  /**
   * Puts the objects that are missing. Rejects when the store can't even be asked for them, but not when the put fails.
   */
  async #putMissing({ job, fence, limit }: QueuedSave, candidates: Candidates): Promise<PutOutcome> {
    const { store, putOptions, groupIds, logger } = this.#options;
    const { reqId } = job;
    const exists = await store.savedKeys(candidates.keys, limit);
    const put: number[] = [];
    for (let i = 0; i < candidates.keys.length; i++) if (exists[i] !== 1) put.push(i);
    if (put.length === 0) return { put, failed: new Set(), raised: false };
    const keys = put.map((position) => candidates.keys[position]!);
    const segments = candidates.segments(put);
    if (fence) await limit.run("the fence of a store job", () => fence());
    const options = groupIds ? { ...putOptions, groupIds: this.#groupIds(candidates, put) } : putOptions;
    const late = (problem: string, error?: unknown): void =>
      logger.warn(problem, { reqId, keys: keys.length, firstKey: keys[0], error });
    try {
      const answer = await store.put(keys, segments, options, limit, late);
      this.#notePressure(job, keys, answer);
      return { put, failed: answer.failed, raised: false };
    } catch (error) {
      logger.warn("a put failed", { reqId, keys: keys.length, firstKey: keys[0], error });
      return { put, failed: new Set(), raised: true };
    }
  }

  #notePressure(job: ReqMeta, keys: readonly string[], { codes, failed }: TransferAnswer): void {
    const [first] = failed;
    if (first === undefined) {
      this.ledger.clearPressure();
      return;
    }
    const distinct = new Set(Array.from(failed, (position) => codes[position]));
    if (distinct.has(MOONCAKE_NO_AVAILABLE_HANDLE)) this.ledger.markPressure(job);
    this.#options.logger.warn("some objects could not be stored", {
      reqId: job.reqId,
      failed: failed.size,
      keys: keys.length,
      codes: [...distinct],
      firstKey: keys[first],
    });
  }

  #addEvents(events: readonly BlockStored[]): void {
    for (const event of events) this.#events.push(event);
    const lost = this.#events.length - MOST_EVENTS;
    if (lost <= 0) return;
    this.#events.splice(0, lost);
    this.#options.logger.warn("nobody takes the events of stored blocks; the oldest are dropped", { lost });
  }

  #groupIds({ keys, groupIds }: Candidates, positions: readonly number[]): string[] {
    return positions.map((position) =>
      makeMooncakeGroupId(
        this.#options.databases[groupIds[position]!]!.metadata,
        chunkHashOfKey(keys[position]!),
      ),
    );
  }
}

/** The id of a job. @throws MooncakeKvError `ERR_REQUEST` for a job without one. */
export function checkedJobId({ reqId, storeJobId }: ReqMeta): number {
  if (storeJobId === null)
    throw requestError(`a job of request ${reqId} has no storeJobId, so nobody could be told of its end`, {
      reqId,
    });
  return checkCount("storeJobId", storeJobId);
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
