import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ArenaMemory } from "../../../src/store/shared/arena-memory.js";
import { Regions } from "../../../src/store/shared/regions.js";
import { planRows, planRowsWithoutAddon } from "../../../src/store/shared/row-plan.js";
import type { RowColumns } from "../../../src/store/shared/rows.js";
import { check } from "../../helpers/property.js";

const END = 1n << 64n;

function columns(rows: readonly (readonly (readonly [address: bigint, size: bigint])[])[]): RowColumns {
  const segments = rows.flat();
  const rowOffsets = new Uint32Array(rows.length + 1);
  for (const [row, list] of rows.entries()) rowOffsets[row + 1] = rowOffsets[row]! + list.length;
  return {
    addresses: BigUint64Array.from(segments, ([address]) => address),
    sizes: BigUint64Array.from(segments, ([, size]) => size),
    rowOffsets,
  };
}

test("no overlap, no NULL, nothing empty, nothing that wraps around", () => {
  const regions = new Regions();
  assert.ok(regions.add(110n, 5n));
  const first = regions.add(100n, 10n)!;
  for (const [address, size] of [
    [0n, 5n],
    [100n, 0n],
    [99n, 2n],
    [114n, 1n],
    [105n, 100n],
    [50n, 500n],
    [END - 1n, 2n],
  ] as const)
    assert.is(regions.add(address, size), undefined, `${address}`);
  assert.is(regions.find(100n), first);
  assert.is(regions.find(101n), undefined);
  assert.ok(regions.add(END - 1n, 1n));
  assert.equal(
    regions.all.map(({ address }) => address),
    [100n, 110n, END - 1n],
  );
});

test("memory in use is waited for, by everybody who takes it away", async () => {
  const regions = new Regions();
  const region = regions.add(100n, 10n)!;
  const rows = regions.check(columns([[[100n, 10n]]]));
  assert.equal(rows.usedRegions, [region]);
  let end = (): void => {};
  const use = regions.withRegions(rows, () => new Promise<void>((resolve) => (end = resolve)));
  const other = regions.withRegions(rows, async () => {
    throw new Error("failed");
  });
  const gone: string[] = [];
  regions.remove(region).then(() => gone.push("first"));
  regions.remove(region).then(() => gone.push("second"));
  assert.is(regions.find(100n), undefined);
  assert.is(regions.add(105n, 1n), undefined, "still in use");
  assert.not.ok(regions.check(columns([[[100n, 1n]]])).isUsable(0));
  assert.is((await other.catch((error: Error) => error)) instanceof Error, true);
  assert.equal(gone, []);
  end();
  await use;
  await Promise.resolve();
  assert.equal(gone, ["first", "second"]);
  await regions.remove(region);
  assert.ok(regions.add(105n, 1n));
});

test("rows: which are usable, how large, in which pieces; for a native call the others point to NULL", () => {
  const regions = new Regions();
  const [a, b] = [regions.add(1000n, 100n)!, regions.add(1100n, 50n)!];
  const rows = regions.check(
    columns([
      [
        [1010n, 10n],
        [1020n, 5n],
      ],
      [
        [1090n, 10n],
        [1100n, 10n],
      ],
      [[999n, 2n]],
      [
        [1000n, 1n],
        [0n, 0n],
      ],
      [],
    ]),
  );
  assert.equal(
    [0, 1, 2, 3, 4].map((row) => rows.isUsable(row)),
    [true, true, false, false, true],
  );
  assert.is(rows.bytes(0), 15n);
  assert.equal(rows.pieces(0), [{ region: a, address: 1010n, size: 15n }]);
  assert.equal(
    rows.pieces(1).map(({ region }) => region),
    [a, b],
  );
  assert.equal([...rows.forNative().addresses], [1010n, 1020n, 1090n, 1100n, 0n, 0n, 0n]);
  assert.equal([...rows.addresses], [1010n, 1020n, 1090n, 1100n, 999n, 1000n, 0n]);
});

test("the plan without the addon is that of the addon", () => {
  const address = fc.oneof(fc.bigInt(0n, 40n), fc.bigInt(END - 4n, END - 1n));
  const segment = fc.tuple(address, fc.oneof(fc.bigInt(0n, 12n), fc.bigInt(END - 3n, END - 1n)));
  check(
    fc.property(
      fc.array(fc.tuple(fc.bigInt(1n, 6n), fc.bigInt(1n, 8n)), { maxLength: 4 }),
      fc.array(fc.array(segment, { maxLength: 4 }), { maxLength: 5 }),
      (gaps, rows) => {
        const regions = new Regions();
        let at = 0n;
        for (const [gap, size] of gaps) {
          regions.add(at + gap, size);
          at += gap + size;
        }
        const { addresses, sizes, rowOffsets } = columns(rows);
        const starts = BigUint64Array.from(regions.all, (region) => region.address);
        const lengths = BigUint64Array.from(regions.all, (region) => region.size);
        const native = planRows(starts, lengths, addresses, sizes, rowOffsets);
        const plain = planRowsWithoutAddon(starts, lengths, addresses, sizes, rowOffsets);
        for (const name of ["codes", "bytes", "starts", "used"] as const)
          assert.equal(plain[name], native[name], name);
        for (const [row, code] of native.codes.entries())
          if (code === 0)
            assert.equal(
              plain.segmentRanges.slice(rowOffsets[row], rowOffsets[row + 1]),
              native.segmentRanges.slice(rowOffsets[row], rowOffsets[row + 1]),
            );
      },
    ),
  );
});

test("arena memory knows who uses it, and goes when nobody does", async () => {
  const memory = ArenaMemory.allocate("test", 5000);
  assert.equal(ArenaMemory.overlapping(memory.baseAddress + 4999n, 10n), [memory]);
  assert.equal(ArenaMemory.overlapping(memory.baseAddress + 5000n, 10n), []);
  assert.ok(memory.holds(memory.baseAddress, 5000n));
  assert.not.ok(memory.holds(memory.baseAddress, 5001n));
  let let_go = (): void => {};
  const using = new Promise<void>((resolve) => (let_go = resolve));
  memory.attach(() => using);
  memory.attach(() => Promise.reject(new Error("of no matter")));
  memory.attach(async () => assert.unreachable())();
  const freed = memory.free();
  assert.ok(memory.closing);
  assert.is(memory.bytes.length, 5000);
  let_go();
  await freed;
  assert.is(memory.bytes.length, 0);
  assert.equal(ArenaMemory.overlapping(memory.baseAddress, 1n), []);
  await memory.free();
});

test.run();
