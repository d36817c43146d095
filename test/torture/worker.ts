import { setTimeout as sleep } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import { isMooncakeKvError } from "../../src/errors.js";
import { SegmentTable } from "../../src/layout/segment-table.js";
import { type Arena, CODE, type KvStore, type MooncakeStore, openStore } from "../../src/store/index.js";
import { fillPattern } from "../store/helpers.js";
import {
  EPOCH,
  MASTER_IS_GONE,
  TOLERANCE_MS,
  type WorkerNews,
  type WorkerOrder,
  type WorkerReport,
} from "./settings.js";

// One thread of a torture: puts and reads values that follow from their keys, many calls at a time, and notes whatever is
// not as it must be.

const { order, shared } = workerData as { order: WorkerOrder; shared: SharedArrayBuffer };
const flags = new Int32Array(shared);
const LANES = 6;
const VALUES = 40;
const LARGEST = 200_000;

/** Values by number, made once: comparing is all that a call costs here. */
const contents = Array.from({ length: VALUES }, (_, number) => {
  const bytes = new Uint8Array(1 + ((number * 104_729) % LARGEST));
  fillPattern(bytes, number + 1);
  return Buffer.from(bytes.buffer);
});

const report = {
  calls: 0,
  good: 0,
  compared: 0,
  brokenDown: 0,
  inVain: 0,
  restarts: 0,
  wrong: [] as string[],
  lost: [] as string[],
  late: [] as string[],
  odd: [] as string[],
  latest: 0,
} satisfies WorkerReport;

let state = order.seed >>> 0 || 1;
function below(limit: number): number {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % limit;
}

/** Keys whose put was acknowledged, each with the start of the master at that time. */
const acknowledged = new Map<string, number>();
let nextKey = 0;

const epoch = (): number => Atomics.load(flags, EPOCH);

/** What a value is follows from its key. */
const contentOf = (key: string): Buffer => contents[Number(/\d+$/.exec(key)![0]) % VALUES]!;

/** Runs a call under its deadline and judges how long it took. */
async function timed<T>(what: string, deadlineMs: number, call: () => Promise<T>): Promise<T | undefined> {
  report.calls++;
  const started = performance.now();
  try {
    return await call();
  } catch (error) {
    if (!isMooncakeKvError(error, "ERR_STORE")) report.odd.push(`${what}: ${String(error)}`);
    report.brokenDown++;
    return undefined;
  } finally {
    const beyond = performance.now() - started - deadlineMs;
    report.latest = Math.max(report.latest, beyond);
    if (beyond > TOLERANCE_MS) report.late.push(`${what}: ${Math.round(beyond)} ms beyond ${deadlineMs} ms`);
  }
}

/** A deadline: mostly short, at times long enough for the caller's memory to be touched directly. */
const someDeadline = (): number => (below(12) === 0 ? 12_000 : 20 + below(1_500));

async function put(store: KvStore, arena: Arena, at: number): Promise<void> {
  const key = `torture-${order.name}-${nextKey++}`;
  const content = contentOf(key);
  const deadlineMs = someDeadline();
  const began = epoch();
  const fromMemory = below(2) === 0;
  if (fromMemory) arena.bytes.set(content, at);
  const result = await timed("put", deadlineMs, () =>
    fromMemory
      ? store.putFrom([key], rows(arena, at, content.length), { deadlineMs })
      : store.put([key], [content], { deadlineMs }),
  );
  // Whoever has the promise has the memory: what is still on its way must not see this.
  if (fromMemory) arena.bytes.fill(0xee, at, at + content.length);
  const code = result?.codes[0];
  if (code === CODE.OK && began === epoch()) acknowledged.set(key, began);
  note("put", code, [CODE.OK]);
}

async function read(store: KvStore, arena: Arena, at: number): Promise<void> {
  const keys = [...acknowledged.keys()];
  const key = keys[below(keys.length)];
  if (key === undefined) return;
  const content = contentOf(key);
  const deadlineMs = someDeadline();
  const stored = acknowledged.get(key)!;
  let code: number | undefined;
  let found: Uint8Array | undefined;
  if (below(2) === 0) {
    arena.bytes.fill(0, at, at + content.length);
    const result = await timed("getInto", deadlineMs, () =>
      store.getInto([key], rows(arena, at, content.length), { deadlineMs }),
    );
    code = result && Number(result.codes[0]);
    found = arena.bytes.subarray(at, at + content.length);
  } else {
    const result = await timed("get", deadlineMs, () => store.get([key], { deadlineMs }));
    code = result && Number(result.codes[0]);
    found = result?.values[0];
  }
  if (code === content.length) {
    report.compared += content.length;
    if (!found || !content.equals(found)) report.wrong.push(`${key}: ${content.length} bytes`);
  }
  // A master that was started again has forgotten everything; that is no loss of ours.
  if (stored !== epoch()) acknowledged.delete(key);
  else if (code === CODE.OBJECT_NOT_FOUND && acknowledged.has(key) && !masterIsGone()) report.lost.push(key);
  note("read", code, [content.length, CODE.OBJECT_NOT_FOUND]);
}

async function ask(store: KvStore): Promise<void> {
  const keys = [...acknowledged.keys()].slice(0, 20);
  const deadlineMs = someDeadline();
  const stored = keys.map((key) => acknowledged.get(key)!);
  const result = await timed("exists", deadlineMs, () => store.exists([...keys, "absent"], { deadlineMs }));
  if (!result) return;
  for (const [i, key] of keys.entries())
    if (result.codes[i] === 0 && stored[i] === epoch() && acknowledged.has(key) && !masterIsGone())
      report.lost.push(key);
  note("exists", result.codes[keys.length], [0]);
}

const masterIsGone = (): boolean => Atomics.load(flags, MASTER_IS_GONE) === 1;

/** Answers of a cluster of which a part is gone. */
const OUTAGES: readonly number[] = [
  CODE.RPC_FAIL,
  CODE.RPC_TIMEOUT,
  CODE.TRANSFER_FAIL,
  CODE.NO_AVAILABLE_HANDLE,
  CODE.LEASE_EXPIRED,
  CODE.REPLICA_IS_NOT_READY,
];

function note(what: string, code: number | undefined, good: readonly number[]): void {
  if (code === undefined) return;
  if (good.includes(code)) report.good++;
  else if (OUTAGES.includes(code) || masterIsGone()) report.inVain++;
  else report.odd.push(`${what}: ${code}`);
}

/** Two pieces, or one: both ways through the sidecar. */
function rows(arena: Arena, at: number, size: number): SegmentTable {
  const address = arena.baseAddress + BigInt(at);
  if (size < 2 || below(2) === 0) return SegmentTable.fromRows([[{ address, size: BigInt(size) }]]);
  const half = BigInt(size >> 1);
  return SegmentTable.fromRows([
    [
      { address, size: half },
      { address: address + half, size: BigInt(size) - half },
    ],
  ]);
}

/** Far below what a segment takes: nothing is evicted, so that whatever is gone is lost. */
const MOST_KEYS = 300;

/** Bounds what the store holds: the oldest go. */
async function forget(store: KvStore): Promise<void> {
  const keys = [...acknowledged.keys()].slice(0, Math.max(0, acknowledged.size - MOST_KEYS));
  for (const key of keys) acknowledged.delete(key);
  if (keys.length > 0)
    await timed("remove", 1_000, () => store.remove(keys, { force: true, deadlineMs: 1_000 }));
}

async function lane(store: KvStore, end: number): Promise<void> {
  while (performance.now() < end) {
    // Memory comes and goes, too.
    const arena = await store.createArena(LARGEST + 64);
    for (let call = 0; call < 25 && performance.now() < end; call++) {
      const at = below(64);
      const kind = below(10);
      if (kind < 4) await put(store, arena, at);
      else if (kind < 8) await read(store, arena, at);
      else if (kind === 8) await ask(store);
      else await forget(store);
      if (acknowledged.size > 2 * MOST_KEYS) await forget(store);
      tellPid(store);
      if (report.wrong.length + report.odd.length + report.lost.length > 50) return;
    }
    await arena.close();
  }
}

let toldPid: number | undefined;
function tellPid(store: KvStore): void {
  const { sidecarPid } = store as Partial<MooncakeStore>;
  if (sidecarPid === undefined || sidecarPid === toldPid) return;
  toldPid = sidecarPid;
  parentPort!.postMessage({ sidecarPid } satisfies WorkerNews);
}

const store = await openStore(order.store as { backend: "embedded" });
tellPid(store);
const end = performance.now() + order.milliseconds;
await Promise.all(Array.from({ length: LANES }, () => lane(store, end)));
// What was acknowledged must be there in the end, once the cluster has calmed down.
await sleep(order.store.backend === "mooncake" ? 1_500 : 0);
for (const [key, stored] of acknowledged) {
  if (stored !== epoch() || masterIsGone()) continue;
  const { codes, values } = await store.get([key]).catch(() => store.get([key]));
  if (!values[0] || !contentOf(key).equals(values[0])) report.lost.push(`${key} in the end: ${codes[0]}`);
  else report.compared += values[0].length;
}
report.restarts = (store as Partial<MooncakeStore>).sidecarRestarts ?? 0;
await store.close();
parentPort!.postMessage(report satisfies WorkerReport);
