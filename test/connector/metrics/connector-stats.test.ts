import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  MooncakeStoreConnectorStats,
  type OperationRecord,
} from "../../../src/connector/metrics/connector-stats.js";

const row = (durationSeconds: number, more: Partial<OperationRecord> = {}): OperationRecord => ({
  durationSeconds,
  numKeys: 1,
  numBytes: 10,
  status: "ok",
  numFailedKeys: 0,
  ...more,
});

test("one line of numbers for every operation, by name", () => {
  const stats = new MooncakeStoreConnectorStats();
  stats.recordOperation("save_put", row(0.01));
  stats.recordOperation("load_get", row(0.25, { status: "error", numFailedKeys: 1 }));
  stats.recordOperation("load_get", row(0.75, { numKeys: 3 }));
  assert.equal(stats.reduce(), {
    load_get_count: 2,
    load_get_avg_ms: 500,
    load_get_p90_ms: 750,
    load_get_total_keys: 4,
    load_get_total_bytes: 20,
    load_get_failed_keys: 1,
    load_get_error_count: 1,
    save_put_count: 1,
    save_put_avg_ms: 10,
    save_put_p90_ms: 10,
    save_put_total_keys: 1,
    save_put_total_bytes: 10,
    save_put_failed_keys: 0,
    save_put_error_count: 0,
  });
  assert.equal(Object.keys(stats.reduce())[0], "load_get_count");
});

test("numbers are rounded as Python rounds them", () => {
  for (const [seconds, expected] of [
    [0.0000625, 0.062], // 0.0625 ms lies halfway: to the even digit.
    [0.0001875, 0.188],
    [0.0000005, 0.001],
    [1.0005 / 1e3, 1],
  ] as const) {
    const stats = new MooncakeStoreConnectorStats();
    stats.recordOperation("x", row(seconds));
    assert.is(stats.reduce()["x_avg_ms"], expected, `${seconds} s`);
  }
});

test("a sum keeps every bit", () => {
  const stats = new MooncakeStoreConnectorStats();
  for (const seconds of [1e16, 1, -1e16]) stats.recordOperation("x", row(seconds));
  assert.is(stats.reduce()["x_avg_ms"], 333.333);
});

test("stats add up, and stay bounded while nobody asks", () => {
  const stats = new MooncakeStoreConnectorStats();
  const other = new MooncakeStoreConnectorStats();
  other.recordOperation("x", row(1));
  assert.is(stats.aggregate(other).aggregate(other), stats);
  assert.is(stats.data.get("x")!.length, 2);
  assert.is(other.data.get("x")!.length, 1);
  for (let i = 0; i < 200_000; i++) stats.recordOperation("x", row(i));
  assert.ok(stats.data.get("x")!.length <= 65_536);
  assert.is(stats.data.get("x")!.at(-1)!.durationSeconds, 199_999);
});

test.run();
