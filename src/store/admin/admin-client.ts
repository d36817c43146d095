import {
  type AdminSegment,
  type KeyAnswer,
  type MasterHealth,
  type MemoryReplica,
  ok,
  readBatchQuery,
  readHealth,
  readKeyQuery,
  readMetric,
  readSegments,
} from "./answers.js";
import { type CarriedKey, encodeForKeyQuery } from "./carried-keys.js";
import { Deadline } from "./deadline.js";
import { AdminFailure, adminFailure, deadlinePassed } from "./failure.js";
import { HttpClient } from "./http-client.js";

/** The longest answer taken, beyond what the keys that were asked for need. */
const LONGEST_ANSWER = 16 << 20;

/** The longest line taken from `/get_all_keys`; keys of 1 MiB were seen to work. */
const LONGEST_KEY = 16 << 20;

/** The queries of the master's HTTP interface that this store uses. All fail with `AdminFailure`. */
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
    return readKeyQuery(await this.#get(`/query_key?key=${encodeForKeyQuery(key)}`, deadline));
  }

  /** What the master says about many keys. Grants no lease. */
  async queryBatch(keys: readonly CarriedKey[], deadline: Deadline): Promise<Map<string, KeyAnswer>> {
    const encoded = keys.map((key) => key.encoded).join(",");
    return readBatchQuery(await this.#get(`/batch_query_keys?keys=${encoded}`, deadline));
  }

  async segments(deadline: Deadline): Promise<AdminSegment[]> {
    return readSegments(await this.#get("/get_segments_detail", deadline));
  }

  async health(deadline: Deadline): Promise<MasterHealth> {
    return readHealth(await this.#get("/health", deadline));
  }

  /** Objects that the master knows; undefined when it keeps no metrics. */
  async keyCount(deadline: Deadline): Promise<bigint | undefined> {
    return readMetric(await this.#get("/metrics", deadline), "master_key_count");
  }

  /** Every key of the default tenant whose object can be read, in no order, as it streams in. Grants no lease. */
  async *allKeys(idleMs: number): AsyncGenerator<Buffer> {
    const path = "/get_all_keys";
    const response = await timed(idleMs, (deadline) => this.#http.open(path, deadline));
    try {
      const status = response.statusCode ?? 0;
      if (status !== 200) ok(path, { status, body: Buffer.alloc(0) });
      const chunks = response[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
      let rest: Buffer = Buffer.alloc(0);
      for (;;) {
        const next = await timed(idleMs, async (deadline) => {
          const stop = deadline.whenExpired(() => response.destroy(deadlinePassed(path, idleMs)));
          try {
            return await chunks.next();
          } finally {
            stop();
          }
        });
        if (next.done) break;
        const lines = splitLines(rest.length === 0 ? next.value : Buffer.concat([rest, next.value]));
        rest = lines.pop()!;
        if (rest.length > LONGEST_KEY)
          throw new AdminFailure(-10, `${path} gives a key of more than ${LONGEST_KEY} bytes`);
        yield* lines;
      }
      if (rest.length > 0) yield rest;
    } catch (error) {
      const failure = adminFailure(error);
      throw failure.storeCode === -1 ? new AdminFailure(-900, `${path}: ${failure.message}`) : failure;
    } finally {
      response.destroy();
    }
  }

  close(): void {
    this.#http.close();
  }

  #get(path: string, deadline: Deadline): ReturnType<HttpClient["get"]> {
    return this.#http.get(path, deadline, LONGEST_ANSWER + 8 * path.length);
  }
}

async function timed<T>(ms: number, work: (deadline: Deadline) => Promise<T>): Promise<T> {
  const deadline = new Deadline(ms);
  try {
    return await work(deadline);
  } finally {
    deadline.end();
  }
}

/** The lines of `bytes`; the last one, without an end, may be empty. */
function splitLines(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  let start = 0;
  for (let end = bytes.indexOf(0x0a); end >= 0; end = bytes.indexOf(0x0a, start)) {
    lines.push(bytes.subarray(start, end));
    start = end + 1;
  }
  lines.push(bytes.subarray(start));
  return lines;
}
