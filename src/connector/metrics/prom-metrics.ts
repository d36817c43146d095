import { configChecks } from "../../coordinator/checks.js";
import { describe, MooncakeKvError } from "../../errors.js";
import { callUser } from "../user-callbacks.js";
import type { MooncakeStoreConnectorStats, OperationRecord } from "./connector-stats.js";

/** What is used of prom-client, or of anything that has its metric classes. */
export interface PromClient {
  readonly Counter: new (options: PromMetricOptions) => PromCounter;
  readonly Histogram: new (options: PromMetricOptions & { readonly buckets: number[] }) => PromHistogram;
}

/** What a metric is made of. */
export interface PromMetricOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames: string[];
  readonly registers?: unknown[] | undefined;
}

interface PromCounter {
  labels(...values: string[]): { inc(value?: number): void };
}

interface PromHistogram {
  labels(...values: string[]): { observe(value: number): void };
}

/** Upper bounds of the histogram, in seconds, of vllm-0.33. */
export const OPERATION_TIME_BUCKETS: readonly number[] = [
  0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 1.5, 2, 3, 4,
];

const COUNTERS = {
  calls: ["vllm:mooncake_store_operation_total", "Number of Mooncake store communication operations."],
  keys: ["vllm:mooncake_store_operation_keys_total", "Number of Mooncake store keys touched by operations."],
  bytes: [
    "vllm:mooncake_store_operation_bytes_total",
    "Number of bytes transferred by Mooncake store operations.",
  ],
  failedKeys: [
    "vllm:mooncake_store_operation_failed_keys_total",
    "Number of Mooncake store keys that failed in operations.",
  ],
} as const;

/** How metrics are made. */
export interface PromMetricsOptions {
  /** The metric classes: what `loadPromClient` gives. */
  readonly client: PromClient;
  /** Labels of the engine, besides `operation` and `status`, with the values of this engine. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** prom-client's registries. Default: its global one. */
  readonly registers?: unknown[] | undefined;
}

/**
 * The connector's metrics under vLLM's names, so that dashboards made for vLLM show them: one histogram and four
 * counters with the labels `operation` and `status`. Mirrors vLLM's `MooncakeStorePromMetrics`.
 */
export class MooncakeStorePromMetrics {
  readonly #labelValues: readonly string[];
  readonly #time: PromHistogram;
  readonly #counters: { readonly [Name in keyof typeof COUNTERS]: PromCounter };
  /** Values that the client did not take, and why it did not take the last of them. */
  readonly refused: { count: number; lastError: unknown } = { count: 0, lastError: undefined };

  /** Registers the metrics. Throws what the client throws, for example for a name that is registered already. */
  /** @throws MooncakeKvError `ERR_CONFIG` for options that are none. */
  constructor(options: PromMetricsOptions) {
    const {
      client,
      labels = {},
      registers,
    } = configChecks.names("MooncakeStorePromMetrics", options, {
      client: 1,
      labels: 1,
      registers: 1,
    });
    if (typeof client?.Histogram !== "function")
      throw configChecks.error(`client is ${describe(client)}; it is what loadPromClient gives`, { client });
    this.#labelValues = Object.values(labels);
    const common = {
      labelNames: [...Object.keys(labels), "operation", "status"],
      ...(registers && { registers }),
    };
    this.#time = new client.Histogram({
      name: "vllm:mooncake_store_operation_time_seconds",
      help: "Histogram of Mooncake store communication time.",
      buckets: [...OPERATION_TIME_BUCKETS],
      ...common,
    });
    const counter = ([name, help]: readonly [string, string]) =>
      new client.Counter({ name, help, ...common });
    this.#counters = {
      calls: counter(COUNTERS.calls),
      keys: counter(COUNTERS.keys),
      bytes: counter(COUNTERS.bytes),
      failedKeys: counter(COUNTERS.failedKeys),
    };
  }

  /**
   * Adds what a worker did: what `MooncakeStoreWorker.getKvConnectorStats` gives. Never throws: a value that the client
   * does not take is counted as `refused`, and costs none of the others.
   */
  observe(stats: MooncakeStoreConnectorStats | null): void {
    for (const [operation, records] of stats?.data ?? [])
      for (const record of records) this.#observe([...this.#labelValues, operation, record.status], record);
  }

  #observe(labels: readonly string[], record: OperationRecord): void {
    const { calls, keys, bytes, failedKeys } = this.#counters;
    const add = (tell: () => unknown): void =>
      callUser(tell, (error) => {
        this.refused.count++;
        this.refused.lastError = error;
      });
    add(() => this.#time.labels(...labels).observe(record.durationSeconds));
    add(() => calls.labels(...labels).inc(1));
    add(() => keys.labels(...labels).inc(record.numKeys));
    add(() => bytes.labels(...labels).inc(record.numBytes));
    add(() => failedKeys.labels(...labels).inc(record.numFailedKeys));
  }
}

/**
 * prom-client, an optional peer that is only loaded here.
 *
 * @throws MooncakeKvError `ERR_CONFIG` when it is not installed.
 */
export async function loadPromClient(): Promise<PromClient> {
  try {
    const loaded = (await import("prom-client")) as unknown as PromClient & {
      readonly default?: PromClient | undefined;
    };
    return loaded.default ?? loaded;
  } catch (cause) {
    throw new MooncakeKvError(
      "ERR_CONFIG",
      "metrics need the package prom-client, which is not installed: npm install prom-client",
      {},
      { cause },
    );
  }
}
