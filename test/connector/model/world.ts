import type { ConnectorLogger } from "../../../src/connector/user-callbacks.js";
import type { VirtualClock } from "./clock.js";
import { FaultyStore } from "./faulty-store.js";
import type { Random } from "./random.js";
import { RankMemory } from "./truth.js";

/** Steps in which everything must come further: each takes a millisecond or more, and every limit is far shorter. */
export const BOUND = 400;

/** What a run has seen, and how often; a model in which nothing happens proves nothing. */
export type Seen = Map<string, number>;

/** What the parts of the little engine share. */
export class World {
  readonly clock: VirtualClock;
  readonly random: Random;
  readonly seen: Seen;
  readonly memories: readonly RankMemory[];
  /** Cache groups. */
  readonly groups: number;
  readonly store: FaultyStore;
  /** Whether faults happen. */
  storm: boolean = true;
  /** The step that runs. */
  step: number = 0;

  constructor(clock: VirtualClock, random: Random, seen: Seen) {
    this.clock = clock;
    this.random = random;
    this.seen = seen;
    this.memories = Array.from({ length: random.int(1, 2) }, (_, rank) => new RankMemory(rank));
    this.groups = random.chance(0.3) ? 2 : 1;
    this.store = new FaultyStore(clock, random, this.memories);
  }

  /** Numbers of the ranks. */
  get ranks(): number[] {
    return [...this.memories.keys()];
  }

  note(what: string, count: number = 1): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + count);
  }

  /** A logger that throws and rejects. */
  logger(): ConnectorLogger {
    const trouble = (): undefined | Promise<never> => {
      const kind = this.storm ? this.random.weighted({ fine: 2, throws: 1, rejects: 1 }) : "fine";
      if (kind === "throws") throw new Error("thrown by the logger");
      return kind === "rejects" ? Promise.reject(new Error("rejected by the logger")) : undefined;
    };
    return { warn: trouble, info: trouble };
  }
}
