import { describe } from "../errors.js";
import { encodeEvent } from "./encode-batch.js";
import { configError } from "./errors.js";
import type { KVCacheEvent } from "./kv-events.js";

/** An event and by how many workers it was reported. */
interface Counted {
  readonly event: KVCacheEvent;
  /** Workers that one report stands for. */
  readonly factor: number;
  count: number;
}

/** Events that wait for the reports of other workers. Those of a worker that never reports would wait for ever. */
const MOST_EVENTS = 131_072;

/**
 * The events of some workers of one engine. An event is common once enough workers have reported it: with replicated KV
 * heads one report stands for as many workers as hold the same bytes. What can't be counted is refused when it comes, so
 * that what has been taken in can always be taken out. Mirrors vLLM's `MooncakeStoreKVEvents`.
 */
export class MooncakeStoreKVEvents {
  /** Events that were dropped because too many waited for other workers: the oldest. */
  dropped: number = 0;
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

  /**
   * Counts each event once more, or for the first time.
   *
   * @throws MooncakeKvError `ERR_CONFIG` for an event of a group without a factor, `ERR_SCHEMA` for one that can't be
   * written; none of the events is counted then.
   */
  addEvents(events: Iterable<KVCacheEvent>): void {
    const given = Array.from(
      events,
      (event) => [eventIdentity(event), event, this.#replicationFactor(event)] as const,
    );
    for (const [identity, event, factor] of given) {
      const counted = this.#counted.get(identity);
      if (counted === undefined) this.#counted.set(identity, { event, factor, count: 1 });
      else counted.count++;
    }
    for (const identity of this.#counted.keys()) {
      if (this.#counted.size <= MOST_EVENTS) break;
      this.#counted.delete(identity);
      this.dropped++;
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
    for (const [identity, { event, count, factor }] of this.#counted) {
      if (count * factor < this.#numWorkers) continue;
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
    const factor = Number.isSafeInteger(event.groupIdx)
      ? this.#groupTpReplicationFactors[event.groupIdx]
      : undefined;
    if (factor === undefined)
      throw configError(
        `an event is of KV cache group ${describe(event.groupIdx)}, but there are replication factors for ${this.#groupTpReplicationFactors.length} groups`,
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
   * @throws MooncakeKvError as `addEvents`; nothing of the poll is counted then.
   */
  poll(reports: readonly (MooncakeStoreKVEvents | null)[]): KVCacheEvent[] {
    const given = reports.filter((report) => report !== null);
    const added = this.#pending === undefined ? given.slice(1) : given;
    const pending = this.#pending ?? given[0];
    pending?.addEvents(added.flatMap((report) => report.getAllEvents()));
    if (this.#pending === undefined && added.length > 0) pending?.incrementWorkers(added.length);
    this.#pending = pending;
    const common = this.#pending?.popCommonEvents() ?? [];
    if (!this.#pending?.hasEvents()) this.#pending = undefined;
    return common;
  }
}
