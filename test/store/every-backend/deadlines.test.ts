import { suite } from "uvu";
import * as assert from "uvu/assert";
import { SegmentTable } from "../../../src/layout/segment-table.js";
import { CODE, type KvStore } from "../../../src/store/index.js";
import { fillPattern } from "../helpers.js";
import { type World, worlds } from "./worlds.js";

// A caller's short deadline costs that caller alone.

const test = suite<{ worlds: World[] }>("deadlines");
test.before(async (context) => {
  context.worlds = await worlds();
});
test.after(async ({ worlds }) => {
  for (const world of worlds) await world[Symbol.asyncDispose]();
});

const MIB = 1 << 20;
const LARGE = 8 * MIB;
const SMALL = 10_000;

function pattern(number: number, size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  fillPattern(bytes, number);
  return bytes;
}

/** Puts and reads large values with deadlines of 1 to 15 ms. */
async function impatient(world: World, store: KvStore, keys: readonly string[]): Promise<number> {
  await using arena = await store.createArena(4 * LARGE);
  let late = 0;
  for (let round = 0; round < 15; round++) {
    const deadlineMs = 1 + round;
    const own = keys[round % keys.length]!;
    const rows = SegmentTable.fromRows([[{ address: arena.baseAddress, size: BigInt(LARGE) }]]);
    arena.bytes.fill(round);
    const read = Number((await store.getInto([own], rows, { deadlineMs })).codes[0]);
    assert.ok(read === LARGE || read === CODE.RPC_TIMEOUT, `${world.name}: ${read}`);
    const seen = new Uint8Array(arena.bytes.subarray(0, LARGE));
    if (read === LARGE) assert.ok(Buffer.from(seen).equals(pattern(round % keys.length, LARGE)), world.name);
    else late++;
    if (!world.writes) continue;
    const key = `late-${process.pid}-${world.name}-${round}`;
    arena.bytes.set(pattern(round, LARGE));
    const put = (await store.putFrom([key], rows, { deadlineMs })).codes[0]!;
    assert.ok(put === CODE.OK || put === CODE.RPC_TIMEOUT, `${world.name}: ${put}`);
    // The memory is the caller's again: what is stored late must not be what it writes now.
    arena.bytes.fill(0xee);
    if (put !== CODE.OK) late++;
    const { values } = await store.get([key]);
    if (values[0]) assert.ok(Buffer.from(values[0]).equals(pattern(round, LARGE)), `${world.name}: torn`);
    await store.remove([key], { force: true });
  }
  return late;
}

/** Reads and asks without a deadline, until told to stop; every call must be right. */
async function patient(
  world: World,
  store: KvStore,
  keys: readonly string[],
  going: () => boolean,
): Promise<number> {
  let calls = 0;
  while (going()) {
    const { codes, values } = await store.get(keys);
    for (const [i, value] of values.entries()) {
      assert.is(Number(codes[i]), SMALL, world.name);
      assert.ok(Buffer.from(value!).equals(pattern(100 + i, SMALL)));
    }
    assert.is((await store.exists(keys)).ok, keys.length, world.name);
    calls += 2;
  }
  return calls;
}

test("1 to 15 ms beside calls without one", async ({ worlds }) => {
  for (const world of worlds) {
    await using store = await world.open();
    const pid = (store as { sidecarPid?: number }).sidecarPid;
    const large = [0, 1, 2].map((i) => `large-${process.pid}-${world.name}-${i}`);
    const small = [0, 1, 2, 3].map((i) => `small-${process.pid}-${world.name}-${i}`);
    await world.seed(
      store,
      [...large, ...small],
      [...large.map((_, i) => pattern(i, LARGE)), ...small.map((_, i) => pattern(100 + i, SMALL))],
    );
    let going = true;
    const others = [0, 1, 2].map(() => patient(world, store, small, () => going));
    const late = await Promise.all([0, 1].map(() => impatient(world, store, large)));
    going = false;
    const calls = await Promise.all(others);
    assert.ok(Math.min(...calls) > 0, `${world.name}: ${calls}`);
    assert.ok(late.length === 2);
    assert.is((store as { sidecarPid?: number }).sidecarPid, pid, "the sidecar was replaced");
    if (world.writes) await store.remove([...large, ...small], { force: true });
  }
});

test("answers that have arrived win over a deadline, however busy this process was", async ({ worlds }) => {
  for (const world of worlds) {
    await using store = await world.open();
    const keys = [0, 1, 2].map((i) => `arrived-${process.pid}-${world.name}-${i}`);
    await world.seed(
      store,
      keys,
      keys.map(() => Uint8Array.of(1)),
    );
    // Connections are there when it counts.
    await Promise.all([store.exists(keys), store.size(keys), store.exists(["absent"])]);
    for (let round = 0; round < 3; round++) {
      const calls = [
        store.exists(keys, { deadlineMs: 150 }),
        store.size(keys, { deadlineMs: 150 }),
        store.exists(["absent"], { deadlineMs: 150 }),
      ];
      // Requests leave with this turn of the event loop; the answers arrive while it is blocked.
      await new Promise((resolve) => setImmediate(resolve));
      const end = performance.now() + 400;
      while (performance.now() < end);
      const [found, sizes, absent] = await Promise.all(calls);
      assert.equal(Array.from(found!.codes, Number), [1, 1, 1], world.name);
      assert.equal(Array.from(sizes!.codes, Number), [1, 1, 1], world.name);
      assert.equal(Array.from(absent!.codes, Number), [0], world.name);
    }
    if (world.writes) await store.remove(keys, { force: true });
  }
});

test.run();
