import { test } from "uvu";
import * as assert from "uvu/assert";
import { JobQueue } from "../../../src/connector/worker/job-queue.js";

test("jobs run in order, never during the call that adds them, no more at a time than is allowed", async () => {
  const done: number[] = [];
  let running = 0;
  let most = 0;
  const queue = new JobQueue<number>(
    async (job) => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 1));
      done.push(job);
      running--;
    },
    2,
    100,
  );
  for (let job = 0; job < 9; job++) assert.ok(queue.push(job));
  assert.equal([running, queue.size], [0, 9]);
  await queue.drained();
  assert.equal(done, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  assert.equal([most, queue.size], [2, 0]);
  await queue.drained();
});

test("a full queue refuses; a job that was taken makes room", async () => {
  const queue = new JobQueue<number>(async () => {}, 1, 2);
  assert.equal([queue.push(1), queue.push(2), queue.push(3)], [true, true, false]);
  await queue.drained();
  assert.ok(queue.push(3));
  await queue.drained();
});

test("many jobs cost no more each than few", async () => {
  let count = 0;
  const queue = new JobQueue<number>(async () => void count++, 1, 1_000_000);
  for (let job = 0; job < 50_000; job++) queue.push(job);
  await queue.drained();
  assert.is(count, 50_000);
});

test.run();
