import { describe } from "../errors.js";
import { encodeEvent } from "./encode-batch.js";
import { configError } from "./errors.js";
import type { KVCacheEvent } from "./kv-events.js";

/** An event and by how many workers it was reported. */
interface Counted {
  readonly event: KVCacheEvent;
  count: number;
}

/**
 * The events of some workers of one engine. An event is common once enough workers have reported it: with replicated KV
 * heads one report stands for as many workers as hold the same bytes. Mirrors vLLM's `MooncakeStoreKVEvents`.
 */
export class MooncakeStoreKVEvents {
  readonly #counted = new Map<string, Counted>();
  readonly #groupTpReplicationFactors: readonly number[];
  #numWorkers: number;

  /**
   * @param numWorkers workers that the events come from.
   * @param groupTpReplicationFactors for each KV cache group, how many workers one report stands for.
   * @throws MooncakeKvError `ERR_CONFIG` for numbers below 1.
   */
  constructor(numWorkers: number, groupTpReplicationFactors: readonly number[] = [1]) {
    checkPositive("number of workers", numWorkers);
    for (const factor of groupTpReplicationFactors) checkPositive("TP replication factor", factor);
    this.#numWorkers = numWorkers;
    this.#groupTpReplicationFactors = groupTpReplicationFactors;
  }

  /** Workers that have reported, the ones without events included. */
  get numWorkers(): number {
    return this.#numWorkers;
  }

  /** Counts each event once more, or for the first time. */
  addEvents(events: Iterable<KVCacheEvent>): void {
    for (const event of events) {
      const identity = eventIdentity(event);
      const counted = this.#counted.get(identity);
      if (counted === undefined) this.#counted.set(identity, { event, count: 1 });
      else counted.count++;
    }
  }

  /** Counts more workers. @throws MooncakeKvError `ERR_CONFIG` for a number below 1. */
  incrementWorkers(count: number = 1): void {
    checkPositive("number of workers", count);
    this.#numWorkers += count;
  }

  /** Takes out the events that enough workers have reported, in the order of their first report. */
  popCommonEvents(): KVCacheEvent[] {
    const common: KVCacheEvent[] = [];
    for (const [identity, { event, count }] of this.#counted) {
      if (count * this.#replicationFactor(event) < this.#numWorkers) continue;
      common.push(event);
      this.#counted.delete(identity);
    }
    return common;
  }

  /** Leaves only the common events, as if one worker had reported them. */
  aggregate(): this {
    const common = this.popCommonEvents();
    this.clearEvents();
    this.addEvents(common);
    return this;
  }

  hasEvents(): boolean {
    return this.#counted.size > 0;
  }

  /** Every event as often as it was reported. */
  getAllEvents(): KVCacheEvent[] {
    return [...this.#counted.values()].flatMap(({ event, count }) =>
      Array.from({ length: count }, () => event),
    );
  }

  clearEvents(): void {
    this.#counted.clear();
    this.#numWorkers = 1;
  }

  #replicationFactor(event: KVCacheEvent): number {
    if (event.type !== "BlockStored" || event.groupIdx === null) return 1;
    const factor = this.#groupTpReplicationFactors[event.groupIdx];
    if (factor === undefined)
      throw configError(
        `an event is of KV cache group ${event.groupIdx}, but there are replication factors for ${this.#groupTpReplicationFactors.length} groups`,
        { groupIdx: event.groupIdx, groups: this.#groupTpReplicationFactors.length },
      );
    return factor;
  }
}

/** Two events with the same members are one: as text, what msgspec would write for them. */
function eventIdentity(event: KVCacheEvent): string {
  return Buffer.from(encodeEvent(event).buffer).toString("latin1");
}

function checkPositive(what: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 1)
    throw configError(`the ${what} is ${describe(value)}; it must be a whole number of 1 or more`, { value });
}

/**
 * The scheduler's side of an engine's events: takes what the workers report in each poll, and gives out each event as
 * soon as enough of them have seen it. Mirrors vLLM's `KVOutputAggregator` and the connector's `take_events`.
 */
export class KvEventQuorum {
  #pending: MooncakeStoreKVEvents | undefined;

  /** What is not common yet; undefined when that is nothing. */
  get pending(): MooncakeStoreKVEvents | undefined {
    return this.#pending;
  }

  /**
   * One poll: the container of each worker that reported; null for one that has no events to report at all.
   *
   * @returns the events that are common now.
   */
  poll(reports: readonly (MooncakeStoreKVEvents | null)[]): KVCacheEvent[] {
    let combined: MooncakeStoreKVEvents | undefined;
    for (const report of reports) {
      if (report === null) continue;
      if (combined === undefined) combined = report;
      else {
        combined.addEvents(report.getAllEvents());
        combined.incrementWorkers();
      }
    }
    if (this.#pending === undefined) this.#pending = combined;
    else if (combined !== undefined) this.#pending.addEvents(combined.getAllEvents());
    const common = this.#pending?.popCommonEvents() ?? [];
    if (!this.#pending?.hasEvents()) this.#pending = undefined;
    return common;
  }
}
