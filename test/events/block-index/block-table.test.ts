import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { BlockTable } from "../../../src/events/block-index/block-table.js";
import { check } from "../../helpers/property.js";

test("hashes that were made to collide are spread like others", () => {
  const table = new BlockTable(2 ** 15, 1, () => {});
  table.enlist(0);
  const patterns: readonly ((at: number) => readonly [low: number, high: number])[] = [
    (at) => [Math.imul(at, 0x9e37_79b1), at],
    (at) => [Math.imul(at * 7919, 0x9e37_79b1) ^ 5, at * 7919],
    (at) => [at << 17, 0],
    (at) => [0, at << 17],
    (at) => [at, at],
  ];
  for (const [tag, pattern] of patterns.entries())
    table.add(
      Uint32Array.from({ length: 2 * 5000 }, (_, at) => pattern(at >> 1)[at & 1 ? 1 : 0]),
      tag,
      0,
    );
  assert.ok(table.longestChain <= 500, `${table.longestChain} entries in one bucket`);
});

test("what is added and removed leaves nothing behind, in any order and any number of copies", () => {
  const step = fc.record({ holder: fc.nat(40), id: fc.nat(5), add: fc.boolean() });
  check(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const table = new BlockTable(16, 2, () => {});
      for (let holder = 0; holder <= 40; holder++) table.enlist(holder);
      const copies = new Map<string, number>();
      for (const { holder, id, add } of steps) {
        const key = `${holder} ${id}`;
        const known = copies.get(key) ?? 0;
        const words = Uint32Array.of(id, 0);
        if (add) assert.is(table.add(words, 0, holder), 0);
        else assert.is(table.remove(words, 0, holder), known > 0 ? 1 : 0);
        copies.set(key, Math.max(0, known + (add ? 1 : -1)));
        const entry = table.find(id, 0, 0);
        const mask = entry < 0 ? 0 : table.mask(entry, holder >>> 5);
        assert.is((mask >>> (holder & 31)) & 1, copies.get(key)! > 0 ? 1 : 0);
      }
      for (const [key, count] of copies) {
        const [holder, id] = key.split(" ").map(Number) as [number, number];
        for (let copy = 0; copy < count; copy++) table.remove(Uint32Array.of(id, 0), 0, holder);
        assert.is(table.remove(Uint32Array.of(id, 0), 0, holder), 0);
      }
      assert.equal([table.size, ...table.held], [0, ...new Array(64).fill(0)]);
    }),
    { numRuns: 300 },
  );
});

test.run();
