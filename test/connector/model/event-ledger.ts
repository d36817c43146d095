import assert from "node:assert/strict";
import type { MooncakeStoreWorker } from "../../../src/connector/worker/mooncake-store-worker.js";
import { EventHashes } from "../../../src/events/event-hashes.js";
import { MooncakeStoreKVEvents } from "../../../src/events/kv-event-aggregator.js";
import { type BlockStored, blockStored, type KVCacheEvent } from "../../../src/events/kv-events.js";
import type { Random } from "./random.js";

/** What ranks have reported of stored blocks, and which of it must come out in the end: what all of them have. */
export class EventLedger {
  readonly #ranks: number;
  readonly #groups: number;
  readonly #random: Random;
  readonly #counts = new Map<string, number>();
  #taking = false;

  constructor(ranks: number, groups: number, random: Random) {
    this.#ranks = ranks;
    this.#groups = groups;
    this.#random = random;
  }

  /**
   * The events of all ranks as one, as vLLM's aggregator adds them up; null where events are off. In a storm an event comes
   * among others that nobody can count: then none of these may be taken in.
   */
  reports(workers: readonly MooncakeStoreWorker[], storm: boolean): MooncakeStoreKVEvents | null {
    let whole: MooncakeStoreKVEvents | null = null;
    for (const worker of workers) {
      const report = worker.getKvConnectorKvCacheEvents();
      if (report === null) return null;
      this.#taking = true;
      for (const event of report.getAllEvents()) {
        const identity = shown(event);
        this.#counts.set(identity, (this.#counts.get(identity) ?? 0) + 1);
      }
      if (whole === null) whole = report;
      else {
        whole.addEvents(report.getAllEvents());
        whole.incrementWorkers();
      }
    }
    if (whole !== null && storm && this.#random.chance(0.1)) {
      const odd = [...whole.getAllEvents(), ...this.foreign().getAllEvents()];
      assert.throws(() => whole.addEvents(odd), { code: "ERR_CONFIG" });
    }
    return whole;
  }

  /** Events of a cache group that the engine does not have. */
  foreign(): MooncakeStoreKVEvents {
    const events = new MooncakeStoreKVEvents(
      1,
      Array.from({ length: this.#groups + 3 }, () => 1),
    );
    const groupIdx = this.#groups + this.#random.int(0, 2);
    events.addEvents([blockStored({ blockHashes: EventHashes.from([7n]), blockSize: 16, groupIdx })]);
    return events;
  }

  /** Compares what comes out with what must, and gives the number of events. */
  check(events: readonly KVCacheEvent[]): number {
    if (!this.#taking) return 0;
    const due = [...this.#counts].filter(([, count]) => count >= this.#ranks).map(([identity]) => identity);
    for (const identity of due) this.#counts.delete(identity);
    assert.deepEqual(events.map(shown).sort(), due.sort(), "other events come out than those of all ranks");
    return due.length;
  }

  /** Everything that waits is forgotten. */
  clear(): void {
    this.#counts.clear();
  }
}

function shown(event: KVCacheEvent): string {
  const { blockHashes, groupIdx, tokenIds } = event as BlockStored;
  return `${Array.from(blockHashes).join()}/${groupIdx}/${tokenIds.length}`;
}
