import type { PinnedSave } from "../../../src/connector/scheduler/store-jobs.js";
import type { MooncakeStoreKVEvents } from "../../../src/events/kv-event-aggregator.js";
import type { EventLedger } from "./event-ledger.js";
import type { Random } from "./random.js";

/** A report that can't be so, and why. */
export interface ImpossibleReport {
  readonly name: string;
  readonly meta: { readonly completedSaves: Map<number, number> };
  readonly events: MooncakeStoreKVEvents | null;
}

/** The right reports of a step with a lie among them; undefined where there is no job that one could be about. */
export function impossibleReport(
  random: Random,
  completed: ReadonlyMap<number, number>,
  pinned: readonly PinnedSave[],
  ledger: EventLedger,
): ImpossibleReport | undefined {
  const completedSaves = new Map(completed);
  const name = random.pick(["too many", "negative", "NaN", "half", "no map", "a foreign group"] as const);
  if (name === "a foreign group") return { name, meta: { completedSaves }, events: ledger.foreign() };
  if (name === "no map") return { name, meta: { completedSaves: [...completed] as never }, events: null };
  if (pinned.length === 0) return undefined;
  const { storeJobId, remaining } = random.pick(pinned);
  const tooMany = remaining + random.int(1, 3);
  completedSaves.set(storeJobId, { "too many": tooMany, negative: -1, NaN: Number.NaN, half: 0.5 }[name]);
  return { name, meta: { completedSaves }, events: null };
}
