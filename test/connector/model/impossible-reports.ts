import type { PinnedSave } from "../../../src/connector/store-jobs.js";
import type { MooncakeStoreKVEvents } from "../../../src/events/kv-event-aggregator.js";
import type { EventLedger } from "./event-ledger.js";
import type { Random } from "./random.js";

/** A report that can't be so, with what it is called. */
export interface ImpossibleReport {
  readonly name: string;
  readonly meta: { readonly completedSaves: Map<number, number> };
  readonly events: MooncakeStoreKVEvents | null;
}

/**
 * A report with the right ones of a step in it, and a lie.
 *
 * @returns the report; `needed` is false where there is nothing that a lie could be about.
 */
export function impossibleReport(
  random: Random,
  completed: ReadonlyMap<number, number>,
  pinned: readonly PinnedSave[],
  ledger: EventLedger,
): { readonly lie: ImpossibleReport; readonly needed: boolean } {
  const honest = new Map(completed);
  const kind = random.pick(["too many", "negative", "NaN", "half", "no map", "a foreign group"] as const);
  if (kind === "a foreign group")
    return {
      lie: { name: kind, meta: { completedSaves: honest }, events: ledger.foreign() },
      needed: true,
    };
  if (kind === "no map")
    return {
      lie: { name: kind, meta: { completedSaves: [...honest] as never }, events: null },
      needed: true,
    };
  const job = pinned[random.int(0, Math.max(0, pinned.length - 1))];
  const count = {
    "too many": (job?.remaining ?? 0) + random.int(1, 3),
    negative: -1,
    NaN: Number.NaN,
    half: 0.5,
  }[kind];
  if (job) honest.set(job.storeJobId, count);
  return { lie: { name: kind, meta: { completedSaves: honest }, events: null }, needed: job !== undefined };
}
