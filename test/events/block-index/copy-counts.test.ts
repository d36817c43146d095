import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { CopyCounts } from "../../../src/events/block-index/copy-counts.js";
import { check } from "../../helpers/property.js";

test("any sequence of copies leaves what a map would hold", () => {
  const command = fc.record({
    kind: fc.constantFrom("add", "add", "add", "take", "forget"),
    entry: fc.nat(40),
    holder: fc.nat(3),
  });
  check(
    fc.property(fc.array(command, { maxLength: 200 }), fc.nat(), (commands, seed) => {
      const counts = new CopyCounts(1, seed | 1);
      const naive = new Map<string, number>();
      for (const { kind, entry, holder } of commands) {
        const key = `${entry} ${holder}`;
        const known = naive.get(key) ?? 0;
        if (kind === "add") {
          const room = known > 0 || naive.size < 48;
          assert.is(counts.add(entry, holder), room);
          if (room) naive.set(key, known + 1);
        } else if (kind === "take") {
          assert.is(counts.take(entry, holder), known > 0);
          if (known > 1) naive.set(key, known - 1);
          else naive.delete(key);
        } else {
          counts.forget(entry, holder);
          naive.delete(key);
        }
        assert.is(counts.size, naive.size);
      }
    }),
    { numRuns: 300 },
  );
});

test("a full table refuses, and its size does not change", () => {
  const counts = new CopyCounts(100, 0x9e37_79b1);
  const { byteLength } = counts;
  let kept = 0;
  for (let entry = 0; entry < 1000; entry++) if (counts.add(entry, 0)) kept++;
  assert.ok(kept >= 100 && kept < 1000, `${kept}`);
  assert.ok(counts.add(0, 0), "one that is there already has room");
  assert.not(counts.add(1000, 0));
  assert.is(counts.byteLength, byteLength);
  counts.forget(0, 0);
  assert.ok(counts.add(1000, 0));
});

test.run();
