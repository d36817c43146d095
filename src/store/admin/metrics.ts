import type { StoreCounters, StoreUsage } from "../shared/usage.js";

/** The metrics that are read of `/metrics`. */
const NAMES = [
  "master_key_count",
  "valid_get_nums_",
  "total_get_nums_",
  "master_put_end_requests_total",
  "master_put_end_failures_total",
  "master_batch_put_end_items_total",
  "master_batch_put_end_failed_items_total",
  "master_evicted_key_count",
  "master_evicted_size_bytes",
  "master_put_start_alloc_failures_total",
] as const;

type Name = (typeof NAMES)[number];

/** Lines that count are neither shorter nor longer. */
const SHORTEST_LINE = 12;
const LONGEST_LINE = 128;
const HASH = 0x23;
/** Counters of the master are signed 64-bit numbers. */
const END = 1n << 63n;

/** The numbers of a master that an answer of `/metrics` gives, line by line. */
export class MasterMetrics {
  readonly #numbers = new Map<string, bigint>();

  /** Takes note of a line, if it is a metric without labels that is of use here. */
  read(line: Buffer): void {
    if (line.length < SHORTEST_LINE || line.length > LONGEST_LINE || line[0] === HASH) return;
    const match = /^([a-z_]+) (\d{1,20})(?:\.0*)?\r?$/.exec(line.toString("latin1"));
    if (match === null || !(NAMES as readonly string[]).includes(match[1]!)) return;
    const number = BigInt(match[2]!);
    if (number < END) this.#numbers.set(match[1]!, number);
  }

  /** Objects that the master knows, unfinished ones included: `master_key_count`. */
  get keys(): bigint | undefined {
    return this.#numbers.get("master_key_count");
  }

  /**
   * What the master has counted since it was started, for all its clients. What removes by pattern, or everything, it
   * counts as one request, however many objects go: so nothing is said of removed ones.
   *
   * - `hits`: `valid_get_nums_`, lookups of replicas that found one: reads, and whoever asks a client for sizes or
   *   replicas. `misses`: the others of `total_get_nums_`.
   * - `stored`: `master_put_end_requests_total` and `master_batch_put_end_items_total` without those that failed: writes
   *   that were ended, upserts among them. A write that also goes to a disk ends twice.
   * - `evicted`, `evictedBytes`: `master_evicted_key_count`, `master_evicted_size_bytes`.
   * - `refusals`: `master_put_start_alloc_failures_total`.
   */
  get counters(): StoreCounters {
    const hits = this.#numbers.get("valid_get_nums_");
    const lookups = this.#numbers.get("total_get_nums_");
    return defined({
      hits,
      misses: without(lookups, hits),
      stored: sum(
        this.#difference("master_put_end_requests_total", "master_put_end_failures_total"),
        this.#difference("master_batch_put_end_items_total", "master_batch_put_end_failed_items_total"),
      ),
      evicted: this.#numbers.get("master_evicted_key_count"),
      evictedBytes: this.#numbers.get("master_evicted_size_bytes"),
      refusals: this.#numbers.get("master_put_start_alloc_failures_total"),
    });
  }

  /** What they say of the use of the cluster. */
  get usage(): Pick<StoreUsage, "keys" | "counters"> {
    const { keys, counters } = this;
    return defined({ keys, counters: Object.keys(counters).length === 0 ? undefined : counters });
  }

  #difference(all: Name, some: Name): bigint | undefined {
    return without(this.#numbers.get(all), this.#numbers.get(some));
  }
}

/** The numbers are read one after the other while others change them, so that a difference may be below 0 for a moment. */
function without(all: bigint | undefined, some: bigint | undefined): bigint | undefined {
  if (all === undefined || some === undefined) return undefined;
  return all > some ? all - some : 0n;
}

function sum(a: bigint | undefined, b: bigint | undefined): bigint | undefined {
  return a === undefined || b === undefined ? undefined : a + b;
}

/** Without the members that are undefined. */
function defined<T extends object>(members: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [Name in keyof T]?: Exclude<T[Name], undefined>;
  };
}
