import type { ReqMeta } from "../../request/req-meta.js";

/** Tokens of a request, for KV events: the first of them is token `start`. */
export interface TokenRange {
  readonly start: number;
  readonly tokenIds: readonly number[];
}

/** Chunks of each group that had no source block yet, ascending. */
export type DueChunks = readonly (readonly number[])[];

/** What is known of one request between its jobs. */
interface RequestLedger {
  /** Jobs that wait or run. */
  readonly live: Set<number>;
  /** Tokens up to which this rank has stored everything it could. */
  savedOffset: number | undefined;
  due: DueChunks;
  /** Tokens of jobs that failed, so that a retry can still announce them. */
  retryTokens: TokenRange | undefined;
}

/**
 * What a rank remembers of the requests it stores. Everything hangs on the job, not on the request's id: the id returns
 * after a preemption, and a job that was left over from the old life must not touch the new one's state.
 */
export class SaveLedger {
  readonly #requests = new Map<string, RequestLedger>();
  readonly #skipped = new Set<string>();
  #completed = new Map<number, number>();
  #pressure = false;

  /** Enters a job, before it can run. False where it waits or runs already: it is to be reported once. */
  begin(reqId: string, storeJobId: number): boolean {
    const request = this.#requests.get(reqId);
    if (request?.live.has(storeJobId)) return false;
    if (request !== undefined) request.live.add(storeJobId);
    else
      this.#requests.set(reqId, {
        live: new Set([storeJobId]),
        savedOffset: undefined,
        due: [],
        retryTokens: undefined,
      });
    return true;
  }

  /** Whether the request of a job still lives the life that the job belongs to. */
  isLive(job: ReqMeta): boolean {
    return this.#live(job) !== undefined;
  }

  /** Reports a job, however it ended: until every rank has, its blocks stay referenced. */
  finish(reqId: string, storeJobId: number): void {
    this.#requests.get(reqId)?.live.delete(storeJobId);
    this.#completed.set(storeJobId, (this.#completed.get(storeJobId) ?? 0) + 1);
  }

  /** The reports since the last call. */
  takeCompleted(): Map<number, number> {
    const completed = this.#completed;
    this.#completed = new Map();
    return completed;
  }

  /** Whether jobs of the request wait or run. */
  hasLiveJobs(reqId: string): boolean {
    return (this.#requests.get(reqId)?.live.size ?? 0) > 0;
  }

  /** Forgets a request that was preempted, or has ended. Jobs of it that still wait are not live any more. */
  forget(reqId: string): void {
    this.#requests.delete(reqId);
    this.#skipped.delete(reqId);
  }

  /** Tokens from which the next job of a request goes on. */
  savedOffset(reqId: string): number {
    return this.#requests.get(reqId)?.savedOffset ?? 0;
  }

  /** Chunks below the offset that had no source block. */
  dueChunks(reqId: string): DueChunks {
    return this.#requests.get(reqId)?.due ?? [];
  }

  /** A job has stored all it could up to `tokenLen`; `due` had no source. */
  recordSaved(job: ReqMeta, tokenLen: number, due: DueChunks): void {
    const request = this.#live(job);
    if (request === undefined) return;
    request.savedOffset = tokenLen;
    request.due = due;
  }

  /** Tokens of the failed jobs before this one. */
  retryTokens(job: ReqMeta): TokenRange | undefined {
    return this.#live(job)?.retryTokens;
  }

  /** Keeps the tokens of a job that failed, or forgets them after one that succeeded. */
  updateRetryTokens(job: ReqMeta, completed: boolean, tokens: TokenRange | undefined): void {
    const request = this.#live(job);
    if (request === undefined) return;
    if (completed) request.retryTokens = undefined;
    else if (tokens !== undefined) request.retryTokens = tokens;
  }

  /** The store had no room for a job: its request pauses until some put succeeds. */
  markPressure(job: ReqMeta): void {
    this.#pressure = true;
    if (this.isLive(job)) this.#skipped.add(job.reqId);
  }

  /** Whether a request pauses. */
  isPaused(reqId: string): boolean {
    return this.#pressure && this.#skipped.has(reqId);
  }

  /** A put succeeded, so the store has room again. */
  clearPressure(): void {
    this.#pressure = false;
    this.#skipped.clear();
  }

  /** What is remembered, for tests and for whoever looks into a running worker. */
  snapshot(): {
    readonly savedOffsets: ReadonlyMap<string, number>;
    readonly liveJobs: ReadonlyMap<string, readonly number[]>;
    readonly pressure: boolean;
    readonly pausedRequests: readonly string[];
  } {
    const entries = [...this.#requests];
    return {
      savedOffsets: new Map(
        entries.flatMap(([reqId, { savedOffset }]): [string, number][] =>
          savedOffset === undefined ? [] : [[reqId, savedOffset]],
        ),
      ),
      liveJobs: new Map(entries.map(([reqId, { live }]) => [reqId, [...live]])),
      pressure: this.#pressure,
      pausedRequests: [...this.#skipped],
    };
  }

  #live({ reqId, storeJobId }: ReqMeta): RequestLedger | undefined {
    const request = this.#requests.get(reqId);
    return request !== undefined && storeJobId !== null && request.live.has(storeJobId) ? request : undefined;
  }
}
