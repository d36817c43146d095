import { AsyncLocalStorage } from "node:async_hooks";
import type { WorkerStore } from "../../../src/connector/worker/store-calls.js";
import type { SegmentTable } from "../../../src/layout/segment-table.js";
import type { CallOptions } from "../../../src/store/shared/call-options.js";
import { KeyList, type StoreKeys } from "../../../src/store/shared/keys.js";
import type { VirtualClock } from "./clock.js";
import type { Random } from "./random.js";
import { type RankMemory, rightObject } from "./truth.js";

/** What a call of the store does. */
type Mood =
  | "fast"
  | "slow"
  | "overdue"
  | "reject"
  | "throw"
  | "hang"
  | "late"
  | "lie"
  | "partial"
  | "length"
  | "nonsense";

const STORMY: Readonly<Record<Mood, number>> = {
  fast: 50,
  slow: 16,
  overdue: 4,
  reject: 5,
  throw: 2,
  hang: 3,
  late: 2,
  lie: 8,
  partial: 6,
  length: 2,
  nonsense: 2,
};

const CALM: Readonly<Record<Mood, number>> = {
  ...{ overdue: 0, reject: 0, throw: 0, hang: 0, late: 0, lie: 0, partial: 0, length: 0, nonsense: 0 },
  fast: 70,
  slow: 30,
};

/** Milliseconds within which a store that keeps to its deadline is done with the memory of a call. */
export const COPY_MS = 8;

/** What the store has said of keys in one lookup: exactly 1, exactly 0, or anything else. */
export type LookupLog = Map<string, 0 | 1 | "none">;

/** The codes of a call, as its mood has them: some of them replaced by lies, too many or too few. */
type Spoil = (codes: readonly unknown[], lies: readonly unknown[]) => unknown[];

/** What is special about a kind of call. */
interface Special {
  /** What a call has done to memory when its deadline overtakes it. */
  readonly overtaken?: () => void;
  /** What comes with an answer that nobody waits for any more. */
  readonly late?: () => void;
}

/** Milliseconds after which an answer comes that nobody waits for any more. */
const LATE_MS = 200;
/** What memory holds when a copy into it was overtaken by the deadline. */
const OVERTAKEN = new Uint8Array(64).fill(0xbb);

/**
 * A store over the memories of all ranks. It keeps to the one rule of a store: when its promise is settled, or its
 * deadline over by some milliseconds, it is done with the memory. Everything else it breaks: it fails, throws, hangs, is
 * late, gives codes that are none, too many, too few or nothing at all. It never claims exactly the right thing of what it
 * has not done.
 */
export class FaultyStore implements WorkerStore {
  /** Whether faults happen. */
  stormy: boolean = true;
  readonly objects: Map<string, Uint8Array> = new Map();
  /** Keys of which it has said that they exist, or were stored. */
  readonly acknowledged: Set<string> = new Set();
  readonly registered: Set<bigint> = new Set();
  /** What callers have done that they must not; an error would only be one more fault to them. */
  readonly violations: string[] = [];
  /** Objects of puts that answered when they had long been given up, and that have not been removed since. */
  readonly owed: Set<string> = new Set();
  /** How often it was emptied. */
  timesEmptied: number = 0;
  readonly moods: Record<Mood, number> = { ...CALM, fast: 0, slow: 0 };
  readonly #lookups = new AsyncLocalStorage<LookupLog>();
  readonly #clock: VirtualClock;
  readonly #random: Random;
  readonly #memories: readonly RankMemory[];

  constructor(clock: VirtualClock, random: Random, memories: readonly RankMemory[]) {
    this.#clock = clock;
    this.#random = random;
    this.#memories = memories;
  }

  /** Notes in `log` what calls of `work` are told about the existence of keys. */
  watchLookup<T>(log: LookupLog, work: () => T): T {
    return this.#lookups.run(log, work);
  }

  exists(keys: StoreKeys, options?: CallOptions): Promise<never> {
    const names = texts(keys);
    const log = this.#lookups.getStore();
    return this.#call(options, (spoil) => {
      const lies = [-900, -1, Number.NaN, undefined, 2, true, "1", 1n];
      const codes = spoil(
        names.map((name) => (this.objects.has(name) ? 1 : 0)),
        lies,
      );
      if (codes.length !== names.length) return codes;
      for (const [index, name] of names.entries()) {
        const code = codes[index];
        if (code === 1) this.acknowledged.add(name);
        log?.set(name, code === 1 || code === 0 ? code : "none");
      }
      return codes;
    });
  }

  putFrom(keys: StoreKeys, segments: SegmentTable, options?: CallOptions): Promise<never> {
    const names = texts(keys);
    const late = () => {
      for (const name of names) this.owed.add(name);
    };
    const put = (spoil: Spoil) => {
      const honest = names.map((_, row) => (this.#isRegistered(segments, row) ? 0 : -600));
      const codes = spoil(honest, [-200, -500, 1, 5, Number.NaN, undefined, "0", 0n, false]);
      for (const [row, name] of names.entries()) {
        if (codes[row] !== 0) continue;
        const bytes = Buffer.concat(this.#views(segments, row));
        if (Buffer.compare(bytes, rightObject(name)) !== 0)
          this.violations.push(`${name} was stored with bytes of other tokens: ${bytes.toString("hex")}`);
        if (!this.objects.has(name)) this.objects.set(name, bytes);
        if (codes.length === names.length) this.acknowledged.add(name);
      }
      return codes;
    };
    return this.#call(options, put, { late });
  }

  getInto(keys: StoreKeys, segments: SegmentTable, options?: CallOptions): Promise<never> {
    const names = texts(keys);
    const half = names.length === 0 ? 0 : Number(segments.rowBytes(0)) / 2;
    const lies = [-704n, -707n, 0n, 0, 1, 1n, half, BigInt(half), Number.NaN, undefined, "32", 33, -1];
    const get = (spoil: Spoil) => {
      const honest = names.map((name, row) => {
        if (!this.#isRegistered(segments, row)) return -600n;
        if (!this.objects.has(name)) return -704n;
        return row % 2 === 0 ? segments.rowBytes(row) : Number(segments.rowBytes(row));
      });
      const codes = spoil(honest, lies);
      for (const [row, name] of names.entries())
        if (codes[row] === honest[row] && honest[row]! > 0)
          this.#fill(segments, row, this.objects.get(name)!);
      return codes;
    };
    const overtaken = () => {
      for (let row = 0; row < names.length; row++) this.#fill(segments, row, OVERTAKEN);
    };
    return this.#call(options, get, { overtaken });
  }

  replicas(_keys: StoreKeys, options?: CallOptions): Promise<never> {
    return this.#call(options, () => []);
  }

  async removeAll(options?: CallOptions): Promise<number> {
    if (this.stormy && this.#random.chance(0.2)) return new Promise(() => {});
    const { codes } = await this.#call<{ readonly codes: number[] }>(options, (spoil) => {
      const codes = spoil([this.objects.size], [-900, Number.NaN, undefined, "3", -1, true]);
      if (codes[0] === this.objects.size) {
        this.objects.clear();
        this.timesEmptied++;
      }
      return codes;
    });
    return codes[0]!;
  }

  async remove(keys: StoreKeys): Promise<never> {
    for (const name of texts(keys)) {
      this.objects.delete(name);
      this.owed.delete(name);
    }
    return undefined as never;
  }

  async registerBuffer(address: bigint): Promise<number> {
    const mood = this.#random.weighted({ fast: 70, hang: 6, reject: 6, lie: 9, late: 9 });
    if (mood === "hang") return new Promise(() => {});
    if (mood === "reject") throw new Error("no registration");
    if (mood === "lie") return this.#random.pick([Number.NaN, 1, undefined!, -600]);
    await this.#clock.sleep(mood === "late" ? 60 : 1);
    if (this.registered.has(address)) this.violations.push("a region was registered twice");
    this.registered.add(address);
    return 0;
  }

  async unregisterBuffer(address: bigint): Promise<number> {
    if (this.registered.delete(address)) return 0;
    this.violations.push("a region was unregistered that was not registered");
    return -600;
  }

  /** One call: when it answers, and what. `answer` does the work and gives its codes. */
  #call<Result = never>(
    options: CallOptions | undefined,
    answer: (spoil: Spoil) => unknown[],
    special: Special = {},
  ): Promise<Result> {
    if (options?.deadlineMs === undefined) this.violations.push("a call without a deadline");
    if (options?.signal?.aborted) this.violations.push("a call that was aborted before it began");
    const mood = this.#mood();
    if (mood === "throw") throw new Error("thrown by the store");
    return this.#answer(mood, options ?? {}, answer, special) as Promise<Result>;
  }

  async #answer(
    mood: Mood,
    { deadlineMs, signal }: CallOptions,
    answer: (spoil: Spoil) => unknown[],
    { overtaken, late }: Special,
  ): Promise<unknown> {
    const spoil: Spoil = (codes, lies) => this.#spoiled(mood, codes, lies);
    // A call that is not told its deadline has none.
    if (mood === "hang" || (mood === "overdue" && deadlineMs === undefined)) return new Promise(() => {});
    if (mood === "reject") throw new Error("connection lost");
    if (mood === "nonsense") return this.#random.pick([undefined, null, {}, { codes: null }, 7]);
    if (mood === "slow") {
      const last = (deadlineMs ?? 100) + COPY_MS - 1;
      await this.#clock.sleep(Math.min(this.#random.int(1, 12), last));
    }
    if (mood === "overdue") {
      await this.#clock.sleep(deadlineMs! + this.#random.int(0, COPY_MS - 1));
      overtaken?.();
      throw new Error("the deadline is over");
    }
    if (signal?.aborted) throw signal.reason;
    if (mood !== "late") return { codes: answer(spoil) };
    const codes = answer(spoil);
    await this.#clock.sleep(LATE_MS);
    late?.();
    return { codes };
  }

  #mood(): Mood {
    const mood = this.#random.weighted(this.stormy ? STORMY : CALM);
    this.moods[mood]++;
    return mood;
  }

  #spoiled(mood: Mood, codes: readonly unknown[], lies: readonly unknown[]): unknown[] {
    switch (mood) {
      case "lie":
        return codes.map((code) => (this.#random.chance(0.6) ? this.#random.pick(lies) : code));
      case "partial":
        return codes.map((code) => (this.#random.chance(0.5) ? lies[0] : code));
      case "length":
        return this.#random.chance(0.5) ? codes.slice(1) : [...codes, ...codes.slice(0, 1), 0];
      default:
        return [...codes];
    }
  }

  #isRegistered(segments: SegmentTable, row: number): boolean {
    return segments
      .row(row)
      .every(({ address }) =>
        this.#memories.some(
          ({ baseAddress, bytes }) =>
            this.registered.has(baseAddress) &&
            address >= baseAddress &&
            address < baseAddress + BigInt(bytes.length),
        ),
      );
  }

  #fill(segments: SegmentTable, row: number, bytes: Uint8Array): void {
    let at = 0;
    for (const view of this.#views(segments, row)) {
      view.set(bytes.subarray(at, at + view.length));
      at += view.length;
    }
  }

  #views(segments: SegmentTable, row: number): Uint8Array[] {
    return segments.row(row).map(({ address, size }) => {
      const memory = this.#memories.find(
        ({ baseAddress, bytes }) => address >= baseAddress && address < baseAddress + BigInt(bytes.length),
      )!;
      const offset = Number(address - memory.baseAddress);
      return memory.bytes.subarray(offset, offset + Number(size));
    });
  }
}

function texts(keys: StoreKeys): string[] {
  const list = new KeyList(keys);
  return Array.from({ length: list.length }, (_, index) => list.at(index));
}
