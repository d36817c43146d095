import { test } from "uvu";
import * as assert from "uvu/assert";
import { loadNative } from "../../src/native/load.js";

const addon = loadNative();
const u64 = (...values: bigint[]): BigUint64Array => BigUint64Array.from(values);
const u32 = (...values: number[]): Uint32Array => Uint32Array.from(values);
const isNative = (error: unknown): boolean => (error as { code?: unknown }).code === "ERR_NATIVE";

test("rows are planned: codes, bytes, starts, ranges", () => {
  const plan = addon.planRows(
    u64(1000n, 5000n),
    u64(100n, 10n),
    u64(1000n, 1010n, 5000n, 999n),
    u64(10n, 5n, 10n, 1n),
    u32(0, 2, 3, 4, 4),
  );
  assert.equal([...plan.codes], [0, 0, -600, 0]);
  assert.equal([...plan.bytes], [15n, 10n, 0n, 0n]);
  assert.equal([...plan.starts], [1000n, 5000n, 0n, 0n]);
  assert.equal([...plan.segmentRanges], [0, 0, 1, -1]);
  assert.equal([...plan.used], [1, 1]);
});

test("shapes that do not fit throw, and never crash", () => {
  const good = [u64(1n), u64(1n), u64(1n), u64(1n), u32(0, 1)] as const;
  assert.equal([...addon.planRows(...good).codes], [0]);
  const bad: unknown[][] = [
    [u64(2n, 1n), u64(1n, 1n), ...good.slice(2)],
    [u64(1n), u64(), ...good.slice(2)],
    [...good.slice(0, 3), u64(), u32(0, 1)],
    [...good.slice(0, 4), u32()],
    [...good.slice(0, 4), u32(1, 0)],
    [...good.slice(0, 4), u32(0, 2)],
    [...good.slice(0, 4), [0, 1]],
    [],
  ];
  for (const args of bad)
    assert.throws(
      () => (addon.planRows as (...args: unknown[]) => unknown)(...args),
      isNative,
      JSON.stringify(args.length),
    );
  assert.throws(() => addon.firstOfEqual(Uint8Array.of(1), u32(0, 2)), isNative);
  assert.equal([...addon.firstOfEqual(Uint8Array.of(1, 1, 2), u32(0, 1, 2, 3))], [0, 0, 2]);
  assert.throws(() => addon.copierOpen(65), isNative);
  const copier = addon.copierOpen(1);
  const copy = addon.copyRows as (...args: unknown[]) => unknown;
  assert.throws(() => copy({}, [], false, u64(), u64(), u32(0), u64()), isNative);
  assert.throws(() => copy(copier, [{}], false, u64(), u64(), u32(0), u64()), isNative);
  assert.throws(() => copy(copier, 5, false, u64(), u64(), u32(0), u64()), isNative);
  assert.throws(() => copy(copier, [], false, u64(1n), u64(1n), u32(0, 1), u64()), isNative);
});

test("rows are copied together and apart, off the event loop; the arenas stay until it is done", async () => {
  const copier = addon.copierOpen(2);
  const [from, to] = [addon.arenaCreate(1 << 21), addon.arenaCreate(1 << 21)];
  const bytes = new Uint8Array(from.buffer);
  for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 7) >>> 3;
  const expected = Buffer.concat([
    bytes.slice(100, 200),
    bytes.slice(0, 50),
    bytes.slice(1 << 20, (1 << 20) + 5),
  ]);
  const base = from.baseAddress;
  const table = [u64(base + 100n, base, base + (1n << 20n)), u64(100n, 50n, 5n), u32(0, 3)] as const;
  await addon.copyRows(copier, [from.handle, to.handle], false, ...table, u64(to.baseAddress));
  assert.ok(Buffer.from(to.buffer, 0, 155).equals(expected));
  bytes.fill(0);
  const copied = addon.copyRows(copier, [from.handle, to.handle], true, ...table, u64(to.baseAddress));
  await copied;
  assert.ok(Buffer.from(from.buffer, 100, 100).equals(expected.subarray(0, 100)));
  const late = addon.copyRows(copier, [from.handle, to.handle], false, ...table, u64(to.baseAddress));
  addon.arenaClose(from.handle);
  addon.arenaClose(to.handle);
  await late;
  assert.throws(
    () => addon.copyRows(copier, [from.handle], false, u64(), u64(), u32(0), u64()),
    isNative,
    "a closed arena",
  );
});

test("memory is there or not", async () => {
  const arena = addon.arenaCreate(8192);
  assert.is(await addon.memoryAccessible(arena.baseAddress, 8192n), true);
  assert.is(await addon.memoryAccessible(16n, 8n), false);
  assert.throws(() => addon.memoryAccessible(arena.baseAddress, 0n), isNative);
  assert.throws(() => addon.memoryAccessible(2n ** 64n - 1n, 2n), isNative);
  addon.arenaClose(arena.handle);
});

test.run();
