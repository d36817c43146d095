import { isMooncakeKvError, MooncakeKvError } from "../../errors.js";
import type { BackendHealth, CallRunner, LackedCall, StoreBackend } from "../backend.js";
import type { Codes, ReplicaAnswer, Sizes, ValueAnswer } from "../shared/answers.js";
import type { CallOptions } from "../shared/call-options.js";
import { CODE } from "../shared/codes.js";
import type { Deadline } from "../shared/deadline.js";
import type { KeyList } from "../shared/keys.js";
import type { Region } from "../shared/region.js";
import type { ReplicaDescriptor } from "../shared/replica.js";
import type { CheckedRows } from "../shared/rows.js";
import type { StoreUsage } from "../shared/usage.js";
import { AdminClient } from "./admin-client.js";
import type { AdminSegment } from "./answers.js";
import { DataPlane } from "./data-plane.js";
import { adminFailure } from "./failure.js";
import { inspectKeys } from "./inspect.js";
import type { KeyAnswer } from "./key-answers.js";
import type { ReadContext } from "./leased-read.js";
import { type AdminStoreOptions, resolveAdminOptions } from "./options.js";
import { Outcomes } from "./outcomes.js";
import { readInto, readValues } from "./read-calls.js";
import { RegionMemory } from "./region-memory.js";

/** What an admin store can do besides `KvStore`. */
export interface AdminExtras {
  /**
   * Every key of the default tenant whose object can be read, in no order, streamed: memory does not grow with their
   * number. Grants no lease. The interface gives one key a line: a key with a newline comes as several, and bytes that
   * are no UTF-8 come as replacement characters (`listBytes` has them as they are). `close` does not wait for it.
   *
   * @throws MooncakeKvError `ERR_STORE` with the code in `details` when the master fails, or sends nothing for
   * `deadlineMs`, and once the store is closed.
   */
  list(options?: CallOptions): AsyncGenerator<string>;
  /** `list` with the bytes of each key. */
  listBytes(options?: CallOptions): AsyncGenerator<Uint8Array>;
  /** The mounted segments. @throws MooncakeKvError `ERR_STORE` with the code in `details`. */
  segments(options?: CallOptions): Promise<AdminSegment[]>;
}

const READ_ONLY = "the admin interface of the master can only be read";

/**
 * A running Mooncake cluster, read-only, with nothing but sockets: what exists is asked of the master's HTTP interface,
 * and bytes come over Mooncake's TCP transport. For gateways that own no memory of the cluster.
 *
 * `exists`, `size`, `replicas`, `usage`, `segments` and `list` grant no lease, unlike those of other backends; `getInto`
 * and `get` do. Calls that write give -1012. Keys that the interface can't carry give -600, with the reason: for
 * `exists`, `size` and `replicas` those with a comma or that are not UTF-8; for `getInto` and `get` those with a space,
 * a control character or "&". A read that breaks off in the middle (-800) may leave its destination half written. An
 * answer of the master that can't be true gives -900, one that is larger than any true one -10.
 */
export class AdminBackend implements StoreBackend<AdminExtras> {
  readonly name = "mooncake-admin";
  readonly deadlineMs: number;
  readonly heapArenas = true;
  readonly lacks: Readonly<Partial<Record<LackedCall, string>>> = {
    putFrom: READ_ONLY,
    put: READ_ONLY,
    upsertFrom: READ_ONLY,
    upsert: READ_ONLY,
    remove: READ_ONLY,
    removeByRegex: READ_ONLY,
    removeAll: READ_ONLY,
  };
  readonly #client: AdminClient;
  readonly #plane = new DataPlane();
  readonly #memory = new RegionMemory();
  readonly #lanes: number;
  readonly #reading: ReadContext;

  /** Connects to nobody yet. @throws MooncakeKvError `ERR_CONFIG` for a bad option. */
  constructor(options: AdminStoreOptions) {
    const { url, deadlineMs, concurrency, leaseMs } = resolveAdminOptions(options);
    this.deadlineMs = deadlineMs;
    this.#client = new AdminClient(url, concurrency);
    this.#lanes = concurrency;
    this.#reading = { client: this.#client, plane: this.#plane, leaseMs };
  }

  async register(region: Region): Promise<number> {
    return this.#memory.open(region);
  }

  async unregister(region: Region): Promise<void> {
    this.#memory.close(region);
  }

  async getInto(keys: KeyList, rows: CheckedRows, deadline: Deadline): Promise<Sizes> {
    const outcomes = new Outcomes(keys.length);
    await readInto(this.#reading, keys, rows, this.#memory, this.#lanes, outcomes, deadline);
    return { codes: outcomes.sizes(), reasons: outcomes.reasons };
  }

  async get(keys: KeyList, deadline: Deadline): Promise<ValueAnswer> {
    const outcomes = new Outcomes(keys.length);
    const values = await readValues(this.#reading, keys, this.#lanes, outcomes, deadline);
    return { codes: outcomes.sizes(), values, reasons: outcomes.reasons };
  }

  async exists(keys: KeyList, deadline: Deadline): Promise<Codes> {
    const outcomes = await this.#inspect(keys, deadline, () => 1n);
    const codes = outcomes.numbers();
    for (let i = 0; i < codes.length; i++)
      if (codes[i] === CODE.OBJECT_NOT_FOUND || codes[i] === CODE.REPLICA_IS_NOT_READY) codes[i] = 0;
    return { codes, reasons: outcomes.reasons };
  }

  async size(keys: KeyList, deadline: Deadline): Promise<Sizes> {
    const sizeOf = ({ memory, stored }: KeyAnswer): bigint => (memory[0] ?? stored[0])!.size;
    const outcomes = await this.#inspect(keys, deadline, sizeOf);
    return { codes: outcomes.sizes(), reasons: outcomes.reasons };
  }

  async replicas(keys: KeyList, deadline: Deadline): Promise<ReplicaAnswer> {
    const replicas: ReplicaDescriptor[][] = Array.from({ length: keys.length }, () => []);
    const outcomes = await this.#inspect(keys, deadline, (answer, index) => {
      replicas[index] = describeReplicas(answer);
      return BigInt(replicas[index].length);
    });
    return { codes: outcomes.numbers(), replicas, reasons: outcomes.reasons };
  }

  /**
   * Capacity and use of all segments together, and what `MasterMetrics` reads of the master's `/metrics`.
   *
   * @throws MooncakeKvError `ERR_STORE` with the code in `details`.
   */
  async usage(deadline: Deadline): Promise<StoreUsage> {
    try {
      const segments = await this.#client.segments(deadline);
      const { usage } = await this.#client.metrics(deadline);
      return {
        capacity: segments.reduce((sum, segment) => sum + segment.capacity, 0n),
        used: segments.reduce((sum, segment) => sum + segment.used, 0n),
        ...usage,
      };
    } catch (error) {
      throw storeError("usage", error, deadline.signal);
    }
  }

  async health(deadline: Deadline): Promise<BackendHealth> {
    const { role, haState, ready } = await this.#client.health(deadline);
    const state = `the master at ${this.#client.address} is ${role}, ${haState}`;
    return ready ? { code: 0, message: state } : { code: 2, message: `${state}, and not ready to serve` };
  }

  async close(): Promise<void> {
    this.#client.close();
    this.#plane.close();
  }

  extras(calls: CallRunner): AdminExtras {
    const client = this.#client;
    async function* listBytes(options?: CallOptions): AsyncGenerator<Uint8Array> {
      calls.assertOpen("list");
      const idleMs = calls.deadlineMs("list", options);
      const signal = options?.signal;
      try {
        signal?.throwIfAborted();
        for await (const key of client.allKeys(idleMs, signal)) {
          yield key;
          calls.assertOpen("list");
          signal?.throwIfAborted();
        }
      } catch (error) {
        if (isMooncakeKvError(error)) throw error;
        calls.assertOpen("list");
        throw storeError("list", error, signal);
      }
    }
    async function* list(options?: CallOptions): AsyncGenerator<string> {
      const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
      for await (const key of listBytes(options)) yield decoder.decode(key);
    }
    const segments = (options?: CallOptions): Promise<AdminSegment[]> =>
      calls.run("segments", options, async (deadline) => {
        try {
          return await client.segments(deadline);
        } catch (error) {
          throw storeError("segments", error, deadline.signal);
        }
      });
    return { list, listBytes, segments };
  }

  #inspect(
    keys: KeyList,
    deadline: Deadline,
    found: (answer: KeyAnswer, index: number) => bigint,
  ): Promise<Outcomes> {
    return inspectKeys(this.#client, keys, this.#lanes, found, deadline);
  }
}

function describeReplicas({ memory, stored }: KeyAnswer): ReplicaDescriptor[] {
  return [
    ...memory.map(
      ({ size, address, endpoint }): ReplicaDescriptor => ({
        status: "COMPLETE",
        kind: "memory",
        size,
        segment: endpoint,
        address,
      }),
    ),
    ...stored.map(
      ({ kind, size, where }): ReplicaDescriptor => ({ status: "COMPLETE", kind, size, segment: where }),
    ),
  ];
}

/** What a call that gives no codes rejects with: the reason of the caller who has aborted it, or what went wrong. */
function storeError(operation: string, error: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return signal.reason;
  const { storeCode, message } = adminFailure(error);
  return new MooncakeKvError("ERR_STORE", `${operation}: ${message} (code ${storeCode})`, {
    operation,
    storeCode,
  });
}
