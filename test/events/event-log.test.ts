import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { EventLog } from "../../src/events/index.js";
import { check } from "../helpers/property.js";

const numberFrame = (number: bigint): Uint8Array => {
  const frame = Buffer.alloc(8);
  frame.writeBigUInt64BE(number);
  return frame;
};
const numberOf = (frames: Uint8Array[]): bigint => Buffer.from(frames[2]!).readBigUInt64BE();
const batch = (ts: number) => ({ ts, events: [], dataParallelRank: null });
const END = 2n ** 64n - 1n;

test("a replay has the last batches from its number on, each with what was published, then the end", () => {
  check(
    fc.property(fc.nat(40), fc.nat(12), fc.bigInt(0n, 45n), (published, bufferSteps, from) => {
      const log = new EventLog({ bufferSteps });
      const sent = Array.from({ length: published }, (_, ts) => log.publish(batch(ts)));
      const answer = [...log.replay(numberFrame(from))];
      assert.is(numberOf(answer.pop()!), END);
      const first = Math.max(published - bufferSteps, Number(from));
      assert.equal(
        answer.map(([, , number, payload]) => [number, payload]),
        sent.slice(first).map(([, number, payload]) => [number, payload]),
      );
    }),
  );
});

test("what is published during a replay is no part of it, and takes the place of what is not sent yet", () => {
  const log = new EventLog({ bufferSteps: 3 });
  for (let ts = 0; ts < 3; ts++) log.publish(batch(ts));
  const replay = log.replay(numberFrame(0n));
  assert.is(numberOf(replay.next().value!), 0n);
  log.publish(batch(3));
  log.publish(batch(4));
  assert.equal([...replay].map(numberOf), [2n, END]);
  const late = log.replay(numberFrame(0n));
  for (let ts = 5; ts < 9; ts++) log.publish(batch(ts));
  late.next();
  assert.equal([...late].map(numberOf), []);
});

test.run();
