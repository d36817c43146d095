import { test } from "uvu";
import * as assert from "uvu/assert";
import { allSettled, inLanes } from "../../../src/store/shared/lanes.js";

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test("all that began is waited for, then the first error is told, and nothing more is begun", async () => {
  let done = 0;
  const slow = async (): Promise<void> => {
    await wait(20);
    done++;
  };
  const bad = async (): Promise<void> => {
    throw new Error("first");
  };
  let message = "";
  await inLanes([slow, bad, slow, slow], 2, (job) => job()).catch((error: Error) => {
    message = error.message;
  });
  assert.is(message, "first");
  assert.is(done, 1);
  await inLanes([slow, slow, slow], 2, (job) => job());
  assert.is(done, 4);
  await inLanes([], 3, bad);
});

test("no more than the lanes run at a time", async () => {
  let running = 0;
  let most = 0;
  await inLanes(Array.from({ length: 20 }), 3, async () => {
    most = Math.max(most, ++running);
    await wait(1);
    running--;
  });
  assert.is(most, 3);
});

test("every part settles before the first failure is told", async () => {
  let settled = false;
  const late = wait(20).then(() => {
    settled = true;
  });
  const failed = await allSettled([Promise.reject(new Error("part")), late]).catch((error: Error) => error);
  assert.is((failed as Error).message, "part");
  assert.ok(settled);
  await allSettled([late]);
});

test.run();
