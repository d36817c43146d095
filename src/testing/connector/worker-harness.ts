import {
  MooncakeStoreWorker,
  type MooncakeStoreWorkerOptions,
} from "../../connector/worker/mooncake-store-worker.js";
import type { WorkerStore } from "../../connector/worker/store-calls.js";
import type { WorkerConfig } from "../../connector/worker/worker-config.js";
import type { CacheTensor } from "../../layout/cache-tensor.js";
import type { SegmentTable } from "../../layout/segment-table.js";
import { BoundaryPut } from "../../request/boundary-put.js";
import { MooncakeStoreConnectorMetadata } from "../../request/connector-metadata.js";
import { createLoadSpec } from "../../request/load-spec.js";
import { ReqMeta, type ReqMetaInit } from "../../request/req-meta.js";
import { TailKeyBoundary } from "../../request/tail-key-boundary.js";
import type { PutOptions } from "../../store/shared/call-options.js";
import { KeyList, type StoreKeys } from "../../store/shared/keys.js";
import { ReplicaResult, StoreResult } from "../../store/store-result.js";
import { hashOf } from "./scheduler-harness.js";

/** What the next call of a kind does instead of working: codes by position, or a rejection. */
export type Fault = { readonly [index: number]: number } | Error;

/** A call as the store saw it. */
export interface SeenCall {
  readonly method: "exists" | "putFrom" | "getInto" | "replicas";
  readonly keys: readonly string[];
  readonly options?: PutOptions | undefined;
}

/** A store in memory that moves real bytes, and fails when it is told to. */
export class MemoryStore implements WorkerStore {
  readonly objects: Map<string, Uint8Array> = new Map();
  readonly calls: SeenCall[] = [];
  readonly faults: { exists: Fault[]; putFrom: Fault[]; getInto: Fault[] } = {
    exists: [],
    putFrom: [],
    getInto: [],
  };
  readonly registered: Map<bigint, bigint> = new Map();
  readonly memory: Uint8Array;
  readonly baseAddress: bigint;
  /** While set, calls wait for it. */
  gate: Promise<void> | undefined;

  constructor(memory: Uint8Array, baseAddress: bigint) {
    this.memory = memory;
    this.baseAddress = baseAddress;
  }

  async registerBuffer(address: bigint, bytes: number | bigint): Promise<number> {
    this.registered.set(address, BigInt(bytes));
    return 0;
  }

  async unregisterBuffer(address: bigint): Promise<number> {
    return this.registered.delete(address) ? 0 : -600;
  }

  async exists(keys: StoreKeys): Promise<StoreResult<Int32Array>> {
    const { names, code } = await this.#begin("exists", keys);
    const codes = names.map((name, index) => code(index) ?? (this.objects.has(name) ? 1 : 0));
    return new StoreResult("exists", new KeyList(keys), Int32Array.from(codes));
  }

  async putFrom(
    keys: StoreKeys,
    segments: SegmentTable,
    options?: PutOptions,
  ): Promise<StoreResult<Int32Array>> {
    const { names, code } = await this.#begin("putFrom", keys, options);
    const codes = names.map((name, index) => {
      const fault = code(index);
      if (fault !== undefined) return fault;
      if (!this.objects.has(name))
        this.objects.set(name, Uint8Array.from(Buffer.concat(this.#views(segments, index))));
      return 0;
    });
    return new StoreResult("putFrom", new KeyList(keys), Int32Array.from(codes));
  }

  async getInto(keys: StoreKeys, segments: SegmentTable): Promise<StoreResult<BigInt64Array>> {
    const { names, code } = await this.#begin("getInto", keys);
    const codes = names.map((name, index) => {
      const fault = code(index);
      if (fault !== undefined) return BigInt(fault);
      const object = this.objects.get(name);
      if (object === undefined) return -704n;
      const views = this.#views(segments, index);
      if (views.reduce((sum, view) => sum + view.length, 0) !== object.length) return -800n;
      let at = 0;
      for (const view of views) {
        view.set(object.subarray(at, at + view.length));
        at += view.length;
      }
      return BigInt(object.length);
    });
    return new StoreResult("getInto", new KeyList(keys), BigInt64Array.from(codes));
  }

  async replicas(keys: StoreKeys): Promise<ReplicaResult> {
    const { names } = await this.#begin("replicas", keys);
    const codes = new Int32Array(names.length);
    return new ReplicaResult(
      new KeyList(keys),
      codes,
      names.map(() => [{ status: "COMPLETE", kind: "memory", size: 1n, segment: "here" }]),
    );
  }

  async removeAll(): Promise<number> {
    const count = this.objects.size;
    this.objects.clear();
    return count;
  }

  async #begin(method: SeenCall["method"], keys: StoreKeys, options?: PutOptions) {
    const list = new KeyList(keys);
    const names = Array.from({ length: list.length }, (_, index) => list.at(index));
    this.calls.push({ method, keys: names, options });
    await this.gate;
    const fault = method === "replicas" ? undefined : this.faults[method].shift();
    if (fault instanceof Error) throw fault;
    return { names, code: (index: number) => fault?.[index] };
  }

  #views(segments: SegmentTable, row: number): Uint8Array[] {
    return segments.row(row).map(({ address, size }) => {
      const offset = Number(address - this.baseAddress);
      if (offset < 0 || offset + Number(size) > this.memory.length) throw new Error("foreign memory");
      return this.memory.subarray(offset, offset + Number(size));
    });
  }
}

/** Bytes of one block of one layer. */
export const BLOCK_BYTES = 64;

const BASE = 0x7f00_0000_0000n;

/** A rank: its worker, its memory and its store. Layers lie one after the other, each with all blocks. */
export interface Rank {
  readonly worker: MooncakeStoreWorker;
  readonly store: MemoryStore;
  /** The bytes of a block of a layer. */
  block(blockId: number, layer?: number): Uint8Array;
}

/** The configuration of a rank with one full-attention group of 16 tokens. */
export const RANK: WorkerConfig = {
  kvRole: "kv_both",
  blockSize: 16,
  kvCacheGroups: [{ kvCacheSpec: { kind: "full", blockSize: 16 } }],
  model: "org/test-model",
  numKvHeads: 8,
};

/** A rank whose caches are registered. */
export async function rank(
  config: Partial<WorkerConfig> = {},
  options: Partial<Omit<MooncakeStoreWorkerOptions, "config">> & {
    readonly numBlocks?: number | undefined;
  } = {},
): Promise<Rank> {
  const { numBlocks = 32, store: given, ...rest } = options;
  const whole = { ...RANK, ...config };
  const layers = whole.kvCacheGroups.length;
  const memory = new Uint8Array(numBlocks * layers * BLOCK_BYTES);
  const store = (given as MemoryStore | undefined) ?? new MemoryStore(memory, BASE);
  const worker = new MooncakeStoreWorker({ config: whole, store, ...rest });
  const tensors = Array.from(
    { length: layers },
    (_, layer): CacheTensor => ({
      address: BASE + BigInt(layer * numBlocks * BLOCK_BYTES),
      storageAddress: BASE,
      storageBytes: BigInt(memory.length),
      shape: [numBlocks, 1, 1, BLOCK_BYTES],
      strides: [BLOCK_BYTES, BLOCK_BYTES, BLOCK_BYTES, 1],
      elementSize: 1,
    }),
  );
  await worker.registerKvCaches(tensors, numBlocks);
  return {
    worker,
    store,
    block: (blockId, layer = 0) => {
      const start = (layer * numBlocks + blockId) * BLOCK_BYTES;
      return store.memory.subarray(start, start + BLOCK_BYTES);
    },
  };
}

/** The hashes of a request, `count` of them. */
export function hashes(count: number, base: number = 97): Uint8Array[] {
  return Array.from({ length: count }, (_, index) => hashOf(base, index));
}

let nextJob = 1000;

/** A job that saves the first `tokens` tokens of a request from these blocks. */
export function save(
  reqId: string,
  tokens: number,
  blockIds: number[][],
  more: Partial<ReqMetaInit> & {
    readonly hashBase?: number | undefined;
    readonly hashBlockSize?: number | undefined;
  } = {},
): ReqMeta {
  const { hashBase, hashBlockSize = 16, ...rest } = more;
  return ReqMeta.create({
    reqId,
    tokenLenChunk: tokens,
    blockIds,
    blockHashes: hashes(Math.floor(tokens / hashBlockSize), hashBase ?? reqId.charCodeAt(0)),
    canSave: true,
    prefillEndTokens: tokens,
    numPromptTokens: tokens,
    storeJobId: nextJob++,
    ...rest,
  });
}

/** A job that loads the first `tokens` tokens of a request, `local` of which the engine has, into these blocks. */
export function load(
  reqId: string,
  tokens: number,
  blockIds: number[][],
  more: {
    readonly local?: number | undefined;
    readonly hashBase?: number | undefined;
    readonly hashBlockSize?: number | undefined;
    readonly tails?: readonly (readonly [number, number])[] | undefined;
  } = {},
): ReqMeta {
  const { hashBlockSize = 16, tails = [] } = more;
  return ReqMeta.create({
    reqId,
    tokenLenChunk: tokens,
    blockIds,
    blockHashes: hashes(Math.ceil(tokens / hashBlockSize) + 4, more.hashBase ?? reqId.charCodeAt(0)),
    canSave: false,
    loadSpec: createLoadSpec({
      vllmCachedTokens: more.local ?? 0,
      kvpoolCachedTokens: tokens,
      canLoad: true,
      tailKeyBoundaries: tails.map((tail) => new TailKeyBoundary(...tail)),
    }),
  });
}

/** Boundary puts from tuples. */
export function puts(...tuples: readonly (readonly [number, number, number])[]): BoundaryPut[] {
  return tuples.map((tuple) => new BoundaryPut(...tuple));
}

/** What a step came to. */
export interface StepResult {
  readonly finished: string[];
  readonly failed: string[];
  readonly invalid: number[];
  readonly completed: [number, number][];
}

/** One step of the engine on a rank, until nothing is under way any more. */
export async function step(
  { worker }: Pick<Rank, "worker">,
  jobs: readonly ReqMeta[],
  more: {
    readonly finished?: readonly string[] | undefined;
    readonly preempted?: readonly string[] | undefined;
  } = {},
): Promise<StepResult> {
  const metadata = new MooncakeStoreConnectorMetadata([], more.preempted ?? []);
  for (const job of jobs) metadata.addRequest(job);
  worker.startLoadKv(metadata);
  await worker.drained();
  worker.waitForSave(metadata);
  await worker.drained();
  return results(worker, metadata, more.finished ?? []);
}

/** What a worker has to report. */
export function results(
  worker: MooncakeStoreWorker,
  metadata: Pick<MooncakeStoreConnectorMetadata, "preemptedReqIds">,
  finished: readonly string[] = [],
): StepResult {
  const { finishedRecving, failedRecving } = worker.getTransferResults(finished, metadata);
  return {
    finished: [...finishedRecving].sort(),
    failed: [...failedRecving].sort(),
    invalid: [...worker.getBlockIdsWithLoadErrors()].sort((a, b) => a - b),
    completed: [...(worker.buildConnectorWorkerMeta()?.completedSaves ?? [])],
  };
}

/** The hashes at the end of the keys of the calls of one kind, one list a call. */
export function hashIndexes(store: MemoryStore, method: SeenCall["method"]): number[][] {
  return store.calls
    .filter((call) => call.method === method)
    .map(({ keys }) => keys.map((key) => Number.parseInt(key.slice(-6, -2), 16)));
}
