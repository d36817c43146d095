import { test } from "uvu";
import * as assert from "uvu/assert";
import { Deadline } from "../../../src/store/shared/deadline.js";
import { Slots } from "../../../src/store/shared/slots.js";

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const block = (ms: number): void => {
  const end = performance.now() + ms;
  while (performance.now() < end);
};

test("who waits is told once, in time, and may change their mind", async () => {
  const deadline = new Deadline(20);
  const told: string[] = [];
  deadline.whenExpired(() => told.push("a"));
  deadline.whenExpired(() => told.push("b"))();
  assert.not.ok(deadline.expired);
  assert.ok(deadline.left > 0 && deadline.left <= 20);
  await wait(60);
  assert.equal(told, ["a"]);
  assert.ok(deadline.expired);
  assert.is(deadline.left, 0);
  deadline.whenExpired(() => told.push("late"));
  assert.equal(told, ["a", "late"]);
});

test("without a limit nothing ever comes; an end takes everything back", async () => {
  const never = new Deadline(Number.POSITIVE_INFINITY);
  assert.is(never.left, Number.POSITIVE_INFINITY);
  never.whenExpired(() => assert.unreachable());
  const over = new Deadline(10);
  over.whenExpired(() => assert.unreachable());
  over.end();
  await wait(40);
  never.end();
});

test("an abort ends it at once", async () => {
  const controller = new AbortController();
  const deadline = new Deadline(60_000, controller.signal);
  let told = false;
  deadline.whenExpired(() => {
    told = true;
  });
  controller.abort();
  assert.ok(deadline.expired && deadline.aborted);
  await wait(10);
  assert.ok(told);
  const late = new Deadline(60_000, controller.signal);
  assert.is(await late.inTime(wait(1_000)), undefined);
});

test("what has arrived is looked at first, however late the timer is", async () => {
  const deadline = new Deadline(30);
  // A timer of the same moment stands for an answer in a socket.
  const answer = new Promise<string>((resolve) => setTimeout(() => setImmediate(() => resolve("there")), 60));
  const found = deadline.inTime(answer);
  block(120);
  assert.is(await found, "there");
  deadline.end();
});

test("slots: who comes first goes first, and a deadline takes nobody's slot", async () => {
  const slots = new Slots(1);
  const deadline = new Deadline(5_000);
  assert.ok(slots.tryTake());
  const short = new Deadline(20);
  const late = slots.take(short);
  const order: number[] = [];
  const first = slots.take(deadline).then(() => order.push(1));
  const second = slots.take(deadline).then(() => order.push(2));
  assert.is(await late, false);
  slots.give();
  await first;
  slots.give();
  await second;
  assert.equal(order, [1, 2]);
  assert.not.ok(slots.tryTake());
  slots.give();
  assert.ok(slots.tryTake());
  deadline.end();
});

test.run();
