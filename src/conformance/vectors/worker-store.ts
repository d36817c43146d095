import type { SaveFence } from "../../connector/worker/save-pipeline.js";
import type { WorkerStore } from "../../connector/worker/store-calls.js";
import type { SegmentTable } from "../../layout/segment-table.js";
import type { PutOptions } from "../../store/shared/call-options.js";
import { CODE } from "../../store/shared/codes.js";
import { KeyList, type StoreKeys } from "../../store/shared/keys.js";
import type { ReplicaDescriptor } from "../../store/shared/replica.js";
import { ReplicaResult, StoreResult } from "../../store/store-result.js";
import type { JsonObject, JsonValue } from "./handler.js";
import { list, optionalList } from "./json.js";

/** What a call answers: a list, single codes by position, "raise", or null for what the fake store says. */
type Programmed = readonly number[] | { readonly [index: string]: number } | "raise" | null;

const PROGRAMS = ["batch_is_exist", "batch_put", "batch_get"] as const;
type Program = (typeof PROGRAMS)[number];

/** What a get came to. */
export interface SeenGet {
  readonly keys: readonly string[];
  /** Whether each key was read in full; none when the call failed. */
  readonly read: readonly boolean[];
  /** Whether a code is neither negative nor the bytes of its row: vLLM takes it for a read. */
  readonly short: boolean;
  /** Whether the call failed as a whole. */
  readonly failed: boolean;
}

/**
 * The fake store of the vectors: a set of keys, whose answers a step may program, and which remembers every call as the
 * vectors write it.
 */
export class RecordingStore implements WorkerStore {
  readonly present: Set<string>;
  /** The calls of the current phase. */
  calls: JsonObject[] = [];
  readonly registered: JsonObject[] = [];
  /** The gets of the current step. */
  gets: SeenGet[] = [];
  readonly #program: Record<Program, Programmed[]> = { batch_is_exist: [], batch_put: [], batch_get: [] };
  readonly #groupIdsSupported: boolean;
  #gate: { readonly open: Promise<void>; readonly reached: () => void } | undefined;
  /** While a lookup runs: the answers to all keys that it may ask. */
  #lookup: Map<string, number> | "raise" | undefined;

  constructor(present: Iterable<string>, groupIdsSupported: boolean) {
    this.present = new Set(present);
    this.#groupIdsSupported = groupIdsSupported;
  }

  /** Queues the answers of a step; `replace` drops those that nobody asked for. */
  program(program: JsonObject, replace: boolean): void {
    for (const name of PROGRAMS) {
      if (replace) this.#program[name].length = 0;
      this.#program[name].push(...((optionalList(program, name) ?? []) as readonly Programmed[]));
    }
  }

  /** Blocks the next call until `release`; `reached` resolves when it is there. */
  gate(): { readonly reached: Promise<void>; release(): void } {
    let release: () => void = () => {};
    let arrive: () => void = () => {};
    const open = new Promise<void>((resolve) => {
      release = resolve;
    });
    const reached = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    this.#gate = { open, reached: arrive };
    return { reached, release: () => release() };
  }

  /** The calls since the last time. */
  takeCalls(): JsonObject[] {
    const calls = this.calls;
    this.calls = [];
    return calls;
  }

  /**
   * Answers a lookup that asks about some of `keys` as the store would have answered one question about all of them. The
   * result says whether that question fails.
   */
  beginLookup(keys: readonly string[]): boolean {
    if (keys.length === 0) return true;
    const codes = this.#answers("batch_is_exist", keys.length, (index) =>
      this.present.has(keys[index]!) ? 1 : 0,
    );
    this.#lookup = codes === "raise" ? "raise" : new Map(keys.map((key, index) => [key, codes[index] ?? 0]));
    return codes !== "raise";
  }

  endLookup(): void {
    this.#lookup = undefined;
  }

  readonly fence: SaveFence = () => void this.calls.push({ method: "event_synchronize" });

  async registerBuffer(address: bigint, bytes: number | bigint): Promise<number> {
    this.registered.push({ method: "register_buffer", addr: String(address), size: Number(bytes) });
    return 0;
  }

  async unregisterBuffer(_address: bigint): Promise<number> {
    return 0;
  }

  async exists(keys: StoreKeys): Promise<StoreResult<Int32Array>> {
    const names = texts(keys);
    if (this.#lookup !== undefined) return this.#lookupAnswer(this.#lookup, keys, names);
    await this.#pass();
    this.calls.push({ method: "batch_is_exist", keys: names });
    const codes = this.#answers("batch_is_exist", names.length, (index) =>
      this.present.has(names[index]!) ? 1 : 0,
    );
    return new StoreResult("exists", new KeyList(keys), Int32Array.from(raised(codes)));
  }

  async putFrom(
    keys: StoreKeys,
    segments: SegmentTable,
    options: PutOptions = {},
  ): Promise<StoreResult<Int32Array>> {
    await this.#pass();
    const names = texts(keys);
    this.calls.push({
      method: "batch_put_from_multi_buffers",
      keys: names,
      ...memory(segments),
      replicate_config: this.#replicateConfig(options),
    });
    const codes = raised(this.#answers("batch_put", names.length, () => 0));
    for (const [index, code] of codes.entries()) if (code >= 0) this.present.add(names[index]!);
    return new StoreResult("putFrom", new KeyList(keys), Int32Array.from(codes));
  }

  async getInto(keys: StoreKeys, segments: SegmentTable): Promise<StoreResult<BigInt64Array>> {
    const names = texts(keys);
    this.calls.push({ method: "batch_get_into_multi_buffers", keys: names, ...memory(segments) });
    const codes = this.#answers("batch_get", names.length, (index) =>
      this.present.has(names[index]!) ? Number(segments.rowBytes(index)) : CODE.OBJECT_NOT_FOUND,
    );
    const failed = codes === "raise" || codes.length !== names.length;
    const read = names.map((_, index) => !failed && codes[index] === Number(segments.rowBytes(index)));
    const short = !failed && read.some((whole, index) => !whole && Number(codes[index]) >= 0);
    this.gets.push({ keys: names, read, short, failed });
    return new StoreResult("getInto", new KeyList(keys), BigInt64Array.from(raised(codes), BigInt));
  }

  async replicas(keys: StoreKeys): Promise<ReplicaResult> {
    const names = texts(keys);
    this.calls.push({ method: "batch_get_replica_desc", keys: names });
    const none: readonly ReplicaDescriptor[] = [];
    return new ReplicaResult(
      new KeyList(keys),
      new Int32Array(names.length),
      names.map(() => none),
    );
  }

  async removeAll(): Promise<number> {
    const count = this.present.size;
    this.present.clear();
    return count;
  }

  #replicateConfig({ preferredSegments, groupIds }: PutOptions): JsonObject {
    return {
      replica_num: 1,
      with_soft_pin: false,
      preferred_segment: preferredSegments?.[0] ?? "",
      group_ids: this.#groupIdsSupported ? [...(groupIds ?? [])] : null,
    };
  }

  #lookupAnswer(
    lookup: Map<string, number> | "raise",
    keys: StoreKeys,
    names: readonly string[],
  ): StoreResult<Int32Array> {
    if (lookup === "raise") throw new Error("programmed");
    const codes = names.map((name) => {
      const code = lookup.get(name);
      if (code === undefined) throw new TypeError(`the lookup asks about ${name}, which vLLM does not`);
      return code;
    });
    return new StoreResult("exists", new KeyList(keys), Int32Array.from(codes));
  }

  #answers(name: Program, count: number, standard: (index: number) => number): number[] | "raise" {
    const programmed = this.#program[name].shift() ?? null;
    if (programmed === "raise") return "raise";
    if (Array.isArray(programmed)) return fitted(name, programmed as readonly number[], count);
    const single = (programmed ?? {}) as { readonly [index: string]: number };
    return Array.from({ length: count }, (_, index) => single[String(index)] ?? standard(index));
  }

  async #pass(): Promise<void> {
    const gate = this.#gate;
    if (gate === undefined) return;
    this.#gate = undefined;
    gate.reached();
    await gate.open;
  }
}

/**
 * A programmed list for `count` keys. A store gives one answer a key, so what vLLM makes of a list of another length is
 * said by one of the right length; only after a get it minds.
 */
function fitted(name: Program, programmed: readonly number[], count: number): number[] {
  if (name === "batch_get") return [...programmed];
  const unmentioned = name === "batch_is_exist" ? 1 : 0;
  return Array.from({ length: count }, (_, index) => programmed[index] ?? unmentioned);
}

function raised(codes: number[] | "raise"): number[] {
  if (codes === "raise") throw new Error("programmed");
  return codes;
}

function texts(keys: StoreKeys): string[] {
  const names = new KeyList(keys);
  return Array.from({ length: names.length }, (_, index) => names.at(index));
}

/** Segments as a vector writes them. */
export function memory(segments: SegmentTable): { readonly addrs: JsonValue; readonly sizes: JsonValue } {
  const rows = Array.from({ length: segments.length }, (_, row) => segments.row(row));
  return {
    addrs: rows.map((row) => row.map(({ address }) => String(address))),
    sizes: rows.map((row) => row.map(({ size }) => Number(size))),
  };
}

/** The keys of a recorded call; none where it is of another method. */
export function callKeys(call: JsonObject, method: string): readonly string[] {
  return call["method"] === method ? list<string>(call, "keys") : [];
}
