import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { SequenceTracker } from "../../src/events/index.js";
import { check } from "../helpers/property.js";

test("live numbers: first, next, gap, restart", () => {
  const tracker = new SequenceTracker();
  assert.is(tracker.due, undefined);
  assert.equal(tracker.live(5n), { kind: "next" });
  tracker.passed(6n);
  assert.equal(tracker.live(6n), { kind: "next" });
  tracker.passed(7n);
  assert.equal(tracker.live(9n), { kind: "gap", from: 7n });
  assert.is(tracker.due, 7n, "nothing of the gap was dealt with yet");
  tracker.passed(10n);
  assert.equal(tracker.live(9n), { kind: "restart" });
  assert.is(tracker.due, 0n);
});

test("what a replay delivered is a duplicate when it comes live, and no restart", () => {
  const tracker = new SequenceTracker();
  tracker.passed(4n);
  assert.equal(tracker.live(2n), { kind: "duplicate" });
  assert.equal(tracker.live(3n), { kind: "duplicate" });
  assert.equal(tracker.live(4n), { kind: "next" });
  tracker.passed(5n);
  tracker.passed(3n);
  assert.is(tracker.due, 5n, "it never goes back");
});

test("of growing live numbers and replays up to any of them, each is delivered once or in a gap", () => {
  check(
    fc.property(fc.array(fc.record({ step: fc.integer({ min: 1, max: 4 }), replay: fc.nat(6) })), (steps) => {
      const tracker = new SequenceTracker();
      const seen = new Set<bigint>();
      const take = (sequence: bigint) => {
        assert.not(seen.has(sequence), `${sequence} twice`);
        seen.add(sequence);
      };
      let live = -1n;
      tracker.passed(0n);
      for (const { step, replay } of steps) {
        const due = tracker.due!;
        for (let next = due; next < due + BigInt(replay); next++) take(next);
        tracker.passed(due + BigInt(replay));
        live += BigInt(step);
        const verdict = tracker.live(live);
        assert.is.not(verdict.kind, "restart");
        if (verdict.kind === "gap") for (let next = verdict.from; next < live; next++) take(next);
        if (verdict.kind === "duplicate") continue;
        take(live);
        tracker.passed(live + 1n);
      }
      assert.is(BigInt(seen.size), tracker.due!);
    }),
  );
});

test.run();
