import { setImmediate as nextTurn } from "node:timers/promises";
import { CODE } from "../shared/codes.js";
import { Deadline } from "../shared/deadline.js";
import {
  type AnswerLimit,
  HEALTH_LIMIT,
  keysLimit,
  LONGEST_KEY,
  METRICS_BYTES,
  SEGMENTS_LIMIT,
} from "./answer-limits.js";
import { type AdminSegment, type MasterHealth, readHealth, readSegments } from "./answers.js";
import { type CarriedKey, encodeForKeyQuery } from "./carried-keys.js";
import { AdminFailure, adminFailure, deadlinePassed } from "./failure.js";
import { type HttpAnswer, HttpClient } from "./http-client.js";
import { refusal } from "./json-answer.js";
import { type KeyAnswer, type MemoryReplica, readBatchQuery, readKeyQuery } from "./key-answers.js";
import { LineSplitter } from "./line-splitter.js";
import { MasterMetrics } from "./metrics.js";

/** Lines that are given before others of this process have their turn. */
const LINES_A_TURN = 1024;

/**
 * The queries of the master's HTTP interface that this store uses. All fail with `AdminFailure`. No answer takes more
 * memory or time than what was asked for can need, whatever the master sends.
 */
export class AdminClient {
  readonly #http: HttpClient;

  constructor(base: URL, connections: number) {
    this.#http = new HttpClient(base, connections);
  }

  /** Where it asks, for messages. */
  get address(): string {
    return this.#http.address;
  }

  /** The replicas of one object that are in memory. Grants the object a lease. */
  async queryKey(key: Uint8Array, deadline: Deadline): Promise<MemoryReplica[]> {
    const limit = keysLimit(1, key.length);
    const answer = await this.#get(`/query_key?key=${encodeForKeyQuery(key)}`, limit, deadline);
    return readKeyQuery(answer, limit.values);
  }

  /** What the master says about many keys. Grants no lease. */
  async queryBatch(keys: readonly CarriedKey[], deadline: Deadline): Promise<Map<string, KeyAnswer>> {
    const limit = keysLimit(
      keys.length,
      keys.reduce((sum, key) => sum + key.bytes, 0),
    );
    const encoded = keys.map((key) => key.encoded).join(",");
    const answer = await this.#get(`/batch_query_keys?keys=${encoded}`, limit, deadline);
    return readBatchQuery(
      answer,
      keys.map((key) => key.text),
      limit.values,
    );
  }

  async segments(deadline: Deadline): Promise<AdminSegment[]> {
    return readSegments(await this.#get("/get_segments_detail", SEGMENTS_LIMIT, deadline));
  }

  async health(deadline: Deadline): Promise<MasterHealth> {
    return readHealth(await this.#get("/health", HEALTH_LIMIT, deadline));
  }

  /** The numbers that the master keeps; none where it keeps no metrics. */
  async metrics(deadline: Deadline): Promise<MasterMetrics> {
    const metrics = new MasterMetrics();
    const lines = new LineSplitter();
    const status = await this.#http.read("/metrics", deadline, METRICS_BYTES, (part) => {
      for (const line of lines.linesOf(part)) metrics.read(line);
    });
    metrics.read(lines.rest());
    return status === 200 ? metrics : new MasterMetrics();
  }

  /**
   * Every key of the default tenant whose object can be read, in no order, as it streams in. Grants no lease. It ends
   * with -901 when nothing comes for `idleMs`, or `signal` aborts it.
   */
  async *allKeys(idleMs: number, signal: AbortSignal | undefined): AsyncGenerator<Buffer> {
    const path = "/get_all_keys";
    const timed = async <T>(work: (deadline: Deadline) => Promise<T>): Promise<T> => {
      const deadline = new Deadline(idleMs, signal);
      try {
        return await work(deadline);
      } finally {
        deadline.end();
      }
    };
    const response = await timed((deadline) => this.#http.open(path, deadline));
    try {
      const status = response.statusCode ?? 0;
      if (status !== 200) throw refusal(path, { status, body: Buffer.alloc(0) });
      const parts = response[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
      const lines = new LineSplitter();
      let given = 0;
      for (;;) {
        const next = await timed(async (deadline) => {
          const stop = deadline.whenExpired(() => response.destroy(deadlinePassed(path, idleMs)));
          try {
            return await parts.next();
          } finally {
            stop();
          }
        });
        if (next.done) break;
        for (const line of lines.linesOf(next.value)) {
          if (++given % LINES_A_TURN === 0) await nextTurn();
          yield line;
        }
        if (lines.begun > LONGEST_KEY)
          throw new AdminFailure(
            CODE.BUFFER_OVERFLOW,
            `${path} gives a key of more than ${LONGEST_KEY} bytes`,
          );
      }
      if (lines.begun > 0) yield lines.rest();
    } catch (error) {
      const failure = adminFailure(error);
      throw failure.storeCode === CODE.INTERNAL_ERROR
        ? new AdminFailure(CODE.RPC_FAIL, `${path}: ${failure.message}`)
        : failure;
    } finally {
      response.destroy();
    }
  }

  close(): void {
    this.#http.close();
  }

  #get(path: string, limit: AnswerLimit, deadline: Deadline): Promise<HttpAnswer> {
    return this.#http.get(path, deadline, limit.bytes);
  }
}
