import { suite } from "uvu";
import * as assert from "uvu/assert";
import { SegmentTable } from "../../../src/layout/segment-table.js";
import { FakeMaster, openFake } from "./fake.js";
import { childrenOf, freeze, holdings, isAlive, pattern, until } from "./setup.js";

// The life of the sidecar, with a stand-in for Mooncake's package: no cluster is needed.

const test = suite<{ master: FakeMaster }>("life of the sidecar");

test.before(async (context) => {
  context.master = await FakeMaster.start();
});
test.after(({ master }) => master[Symbol.asyncDispose]());

async function failure(call: Promise<unknown>): Promise<{ code: string; message: string }> {
  try {
    await call;
  } catch (error) {
    return error as { code: string; message: string };
  }
  throw new Error("the call should have failed");
}

test("opening, working and closing leave no process, descriptor or mapping", async ({ master }) => {
  await (await openFake(master)).close();
  await until("the first is gone", () => holdings().arenas === 0);
  const before = holdings();
  for (let round = 0; round < 3; round++) {
    const store = await openFake(master);
    const arena = await store.createArena(1 << 20);
    const other = await store.createArena(4096);
    arena.bytes.set(pattern(round, 1000));
    const row = SegmentTable.fromRows([[{ address: arena.baseAddress, size: 1000n }]]);
    await store.putFrom(["a"], row);
    assert.equal((await store.get(["a"])).values[0], pattern(round, 1000));
    await other.close();
    await store.close();
    await arena.close();
  }
  await until("everything is given back", () => JSON.stringify(holdings()) === JSON.stringify(before));
});

test("a sidecar that dies is replaced within a second, and its arenas are there", async ({ master }) => {
  await using store = await openFake(master);
  await using arena = await store.createArena(1 << 20);
  arena.bytes.set(pattern(1, 100));
  const pid = store.sidecarPid!;
  const pending = [failure(store.exists(["sleep 20"])), failure(store.exists(["sleep 21"]))];
  await until("the calls are under way", () => childrenOf(process.pid).includes(pid));
  process.kill(pid, "SIGKILL");
  const started = performance.now();
  for (const { code, message } of await Promise.all(pending)) {
    assert.is(code, "ERR_STORE");
    assert.match(message, "ended by SIGKILL");
  }
  const row = SegmentTable.fromRows([[{ address: arena.baseAddress, size: 100n }]]);
  assert.is((await store.putFrom(["again"], row)).codes[0], 0);
  assert.ok(performance.now() - started < 1_000, `${performance.now() - started} ms`);
  assert.equal((await store.get(["again"])).values[0], pattern(1, 100));
  assert.is(store.sidecarRestarts, 1);
  assert.is.not(store.sidecarPid, pid);
  assert.not.ok(isAlive(pid));
});

test("an idle sidecar that dies is replaced without being asked", async ({ master }) => {
  await using store = await openFake(master);
  process.kill(store.sidecarPid!, "SIGKILL");
  await until("a new one runs", () => store.sidecarRestarts === 1 && store.sidecarPid !== undefined, 1_000);
  assert.is((await store.exists(["a"])).codes[0], 0);
});

test("a frozen sidecar and one whose interpreter hangs are replaced after unresponsiveMs", async ({
  master,
}) => {
  await using store = await openFake(master, { unresponsiveMs: 600 });
  await freeze(store.sidecarPid!);
  let started = performance.now();
  assert.match((await failure(store.exists(["a"]))).message, "was stopped by somebody");
  assert.is((await store.exists(["a"])).codes[0], 0);
  assert.ok(performance.now() - started < 2_000, `frozen: ${performance.now() - started} ms`);

  started = performance.now();
  assert.match((await failure(store.exists(["hold 20"]))).message, "gave no sign of life");
  assert.is((await store.exists(["a"])).codes[0], 0);
  assert.ok(performance.now() - started < 2_500, `hanging: ${performance.now() - started} ms`);
  assert.is(store.sidecarRestarts, 2);
});

test("an interpreter that is held up for a second, or a sidecar that stands for one, is nobody's death", async ({
  master,
}) => {
  await using store = await openFake(master);
  const pid = store.sidecarPid!;
  const held = store.exists(["hold 1.2"]);
  const waiting = store.exists(["a"]);
  assert.is((await held).codes[0], 0);
  assert.is((await waiting).codes[0], 0);
  await freeze(pid);
  const late = await store.exists(["a"], { deadlineMs: 100 });
  assert.is(late.codes[0], -901);
  const patient = store.exists(["b"]);
  setTimeout(() => process.kill(pid, "SIGCONT"), 1_000);
  assert.is((await patient).codes[0], 0);
  assert.is(store.sidecarPid, pid);
});

test("a call that blocks stops no other, and is no reason to replace anything", async ({ master }) => {
  await using store = await openFake(master, { threads: 3 });
  const pid = store.sidecarPid;
  const slow = store.exists(["sleep 1.5"]);
  const more = store.exists(["sleep 1.5"]);
  const started = performance.now();
  for (let i = 0; i < 20; i++) assert.is((await store.exists([`k${i}`])).codes[0], 0);
  assert.ok(performance.now() - started < 700, `${performance.now() - started} ms`);
  assert.is((await slow).codes[0], 0);
  assert.is((await more).codes[0], 0);
  assert.is(store.sidecarPid, pid);
});

test("a deadline fails the call with -901 and not the process", async ({ master }) => {
  await using store = await openFake(master);
  const pid = store.sidecarPid;
  const started = performance.now();
  const { codes } = await store.exists(["sleep 1"], { deadlineMs: 100 });
  assert.is(codes[0], -901);
  assert.ok(performance.now() - started < 400);
  assert.is((await store.exists(["b"])).codes[0], 0);
  assert.is(store.sidecarPid, pid);
  assert.is(store.sidecarRestarts, 0);
});

test("who waits for somebody else's command has its deadline, too", async ({ master }) => {
  await using store = await openFake(master, { threads: 1 });
  const [slow, waited] = await Promise.all([
    store.exists(["sleep 0.7"]),
    store.exists(["b"], { deadlineMs: 60 }),
  ]);
  assert.is(slow.codes[0], 0);
  assert.is(waited.codes[0], -901);
  assert.is((await store.exists(["b"])).codes[0], 0);
});

test("commands that outlive their deadlines keep nobody else from working", async ({ master }) => {
  await using store = await openFake(master, { threads: 2 });
  const pid = store.sidecarPid;
  const impatient = Array.from({ length: 20 }, () => store.exists(["sleep 3"], { deadlineMs: 50 }));
  const started = performance.now();
  const patient = Array.from({ length: 50 }, (_, i) => store.exists([`k${i}`]));
  for (const { codes } of await Promise.all(patient)) assert.is(codes[0], 0);
  assert.ok(performance.now() - started < 2_000, `${performance.now() - started} ms`);
  for (const { codes } of await Promise.all(impatient)) assert.is(codes[0], -901);
  assert.is(store.sidecarPid, pid);
  assert.is(store.sidecarRestarts, 0);
});

test("nobody touches the caller's memory after a deadline, and the sidecar goes on", async ({ master }) => {
  await using store = await openFake(master);
  await using arena = await store.createArena(1 << 20);
  const row = SegmentTable.fromRows([[{ address: arena.baseAddress, size: 5000n }]]);
  const pid = store.sidecarPid!;
  arena.bytes.set(pattern(1, 5000));
  const { codes } = await store.putFrom(["sleep 0.5"], row, { deadlineMs: 100 });
  assert.is(codes[0], -901);
  // What is stored late is what the call was made with.
  arena.bytes.set(pattern(2, 5000));
  const { values } = await store.get(["sleep 0.5"]);
  if (values[0]) assert.equal(values[0], pattern(1, 5000));
  await new Promise((resolve) => setTimeout(resolve, 600));
  assert.equal((await store.get(["sleep 0.5"])).values[0], pattern(1, 5000));
  // A read that comes late goes nowhere.
  const late = await store.getInto(["sleep 0.5"], row, { deadlineMs: 100 });
  assert.is(late.codes[0], -901n);
  await new Promise((resolve) => setTimeout(resolve, 600));
  assert.equal(arena.bytes.slice(0, 5000), pattern(2, 5000));
  const some = await store.put(["sleep 0.5"], [pattern(1, 1 << 19)], { deadlineMs: 100 });
  assert.is(some.codes[0], -901);
  const more = await store.put(["x", "y"], [pattern(2, 1 << 19), pattern(3, 1 << 19)]);
  assert.equal([...more.codes], [0, 0]);
  assert.is(store.sidecarPid, pid);
  assert.is(store.sidecarRestarts, 0);
});

test("a command that has the caller's memory itself is ended with its process at a long deadline", async ({
  master,
}) => {
  await using store = await openFake(master);
  await using arena = await store.createArena(1 << 20);
  const row = SegmentTable.fromRows([[{ address: arena.baseAddress, size: 64n }]]);
  const pid = store.sidecarPid!;
  const { codes } = await store.putFrom(["sleep 60"], row, { deadlineMs: 10_100 });
  assert.is(codes[0], -901);
  assert.not.ok(isAlive(pid));
  assert.is((await store.exists(["a"])).codes[0], 0);
});

test("an abort rejects at once, costs nobody else anything, and leaves the memory alone", async ({
  master,
}) => {
  await using store = await openFake(master);
  await using arena = await store.createArena(1 << 20);
  const row = SegmentTable.fromRows([[{ address: arena.baseAddress, size: 64n }]]);
  const pid = store.sidecarPid!;
  const controller = new AbortController();
  const reason = new Error("changed my mind");
  const started = performance.now();
  const calls = [
    store.putFrom(["sleep 2"], row, { signal: controller.signal }),
    store.exists(["sleep 2"], { signal: controller.signal }),
    store.get(["sleep 2"], { signal: controller.signal }),
  ].map((call) => failure(call));
  setTimeout(() => controller.abort(reason), 50);
  for (const error of await Promise.all(calls)) assert.is(error as unknown, reason);
  assert.ok(performance.now() - started < 1_000);
  assert.is((await failure(store.exists(["a"], { signal: controller.signal }))) as unknown, reason);
  assert.is((await store.exists(["a"])).codes[0], 0);
  assert.is(store.sidecarPid, pid);
});

test("what the sidecar refuses rejects the call, and the next call works", async ({ master }) => {
  await using store = await openFake(master);
  const { code, message } = await failure(store.exists(["raise"]));
  assert.is(code, "ERR_STORE");
  assert.match(message, "as the key wants it");
  assert.match((await failure(store.exists(["die"]))).message, "exit code 3");
  assert.is((await store.exists(["a"])).codes[0], 0);
});

test("no log line gets between the messages, and the log is bounded and there on request", async ({
  master,
}) => {
  await using store = await openFake(master);
  const line = "E1129 12:00:00 client.cpp:1] something happened";
  const found = await Promise.all(Array.from({ length: 4 }, () => store.exists([`noise ${line}`, "a"])));
  for (const { codes } of found) assert.equal([...codes], [0, 0]);
  await until("the log has arrived", () => store.log().endsWith(`${line}\n`));
  assert.ok(store.log().length <= 256 << 10);
  assert.ok(store.log().startsWith("E1129"));
});

test("an arena that the sidecar can't map works through staging", async ({ master }) => {
  await using store = await openFake(master);
  await using arena = await store.createArena(1 << 20);
  process.kill(store.sidecarPid!, "SIGKILL");
  await until("a new one runs", () => store.sidecarRestarts === 1 && store.sidecarPid !== undefined);
  arena.bytes.set(pattern(1, 5000));
  const row = (offset: bigint) =>
    SegmentTable.fromRows([[{ address: arena.baseAddress + offset, size: 5000n }]]);
  assert.is((await store.putFrom(["a"], row(0n))).codes[0], 0);
  assert.is((await store.getInto(["a"], row(10_000n))).codes[0], 5000n);
  assert.equal(arena.bytes.slice(10_000, 15_000), pattern(1, 5000));
  const refused = await failure(openFake(master, {}, { FAKE_REGISTER: "-600" }));
  assert.match(refused.message, "can't map the staging memory");
});

test("opening fails with the reason: no master, no answer, no package, no Python", async ({ master }) => {
  await until("those before are gone", () => holdings().arenas === 0);
  const before = holdings();
  const dead = await FakeMaster.start();
  await dead[Symbol.asyncDispose]();
  const refused = await failure(openFake(dead));
  assert.is(refused.code, "ERR_STORE");
  assert.match(refused.message, new RegExp(`${dead.address}.*ECONNREFUSED`));

  const started = performance.now();
  const silent = await failure(openFake(master, { openDeadlineMs: 700 }, { FAKE_SETUP: "sleep" }));
  assert.match(silent.message, new RegExp(`${master.address} .*no answer within 700 ms`));
  assert.ok(performance.now() - started < 1_200);

  assert.match(
    (await failure(openFake(master, {}, { FAKE_SETUP: "-600" }))).message,
    /INVALID_PARAMS \(-600/,
  );
  const missing = await failure(openFake(master, {}, { PYTHONPATH: "/nonexistent", PYTHONNOUSERSITE: "1" }));
  assert.match(missing.message, /package can't be imported|no Mooncake master/);
  assert.match((await failure(openFake(master, { python: "no-such-python" }))).message, "no-such-python");
  await until("everything is given back", () => JSON.stringify(holdings()) === JSON.stringify(before));
});

test("sidecars that die young are not started over and over", async ({ master }) => {
  await using store = await openFake(master, {}, { FAKE_LIFE: "0.05" });
  await until("the store gives up", () => store.sidecarRestarts === 2 && store.sidecarPid === undefined);
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  assert.is(store.sidecarRestarts, 2);
  // A call tries once more.
  await store.exists(["a"]).catch(() => {});
  assert.is(store.sidecarRestarts, 3);
});

test("a sidecar that can't be started again is tried at later calls", async ({ master }) => {
  const lone = await FakeMaster.start();
  await using store = await openFake(lone);
  await lone[Symbol.asyncDispose]();
  process.kill(store.sidecarPid!, "SIGKILL");
  await until("the process is missed", () => store.sidecarPid === undefined);
  assert.match((await failure(store.exists(["a"]))).message, "no Mooncake master answers");
  assert.is((await store.health()).code, 2);
  assert.ok(master.address);
});

test.run();
