import { test } from "uvu";
import * as assert from "uvu/assert";
import { addonCandidates, packageRoot } from "../../src/native/locations.js";
import { endOf, runFixture } from "./helpers/child.js";

for (const how of ["exit", "later", "drain"])
  test(`the process ends well with calls in flight (${how})`, async () => {
    const end = await runFixture("exit-under-calls.ts", { scriptArguments: [how] });
    assert.is(endOf(end), "started");
  });

test("an uncaught error with calls in flight ends the process as usual", async () => {
  const end = await runFixture("exit-under-calls.ts", { scriptArguments: ["throw"] });
  assert.is(end.signal, null);
  assert.is(end.code, 1);
  assert.match(end.stderr, "on purpose");
});

test("worker threads use the addon at once, and may be terminated in the middle of calls", async () => {
  const end = await runFixture("threads.ts");
  assert.is(endOf(end), "done 3 terminated 3");
});

test("garbage collection takes nothing that is in use, and leaves nothing that is not", async () => {
  const end = await runFixture("garbage.ts", { nodeArguments: ["--expose-gc"] });
  assert.is(endOf(end), "collected");
});

test("two copies of the addon work in one process and refuse each other's handles", async () => {
  const [path] = addonCandidates(packageRoot(), process.env);
  const end = await runFixture("two-copies.ts", { scriptArguments: [path!] });
  assert.is(endOf(end), "both work");
});

test.run();
