import { readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { ConversationResult } from "../../src/cli/demo/conversation/run-conversation.js";
import { bar } from "../../src/cli/demo/report.js";
import { run, runJson } from "./helpers/run.js";

/** A line without what differs from run to run, and its columns. */
const shape = (line: string) =>
  line
    .replace(/\d+(\.\d+)?/g, "N")
    .replace(/(native|TypeScript)/, "K")
    .replace(/\s+/g, " ");

test("the demo prints what the README shows", async () => {
  const { exitCode, stdout, stderr } = await run(["demo"]);
  assert.equal([exitCode, stderr], [0, ""]);
  const printed = stdout.split("\n").map(shape);
  const readme = readFileSync("README.md", "utf8");
  const sample = /```\n(openai\/gpt-oss-20b: [\s\S]*?)```/.exec(readme)![1]!.trimEnd().split("\n");
  assert.ok(sample.length > 15);
  let at = 0;
  for (const line of sample.filter((each) => each !== "...")) {
    const found = printed.indexOf(shape(line), at);
    assert.ok(found >= at, `not printed, or not in this order: ${line}`);
    at = found + 1;
  }
});

test("the demo as one object", async () => {
  const { exitCode, value } = await runJson<{
    readonly tokens: number;
    readonly blocks: number;
    readonly firstKey: string;
    readonly lastKey: string;
    readonly saved: { readonly bytes: string };
    readonly first: object;
    readonly second: { readonly hitTokens: number };
    readonly differences: number;
    readonly conversation: ConversationResult;
  }>(["demo"]);
  assert.is(exitCode, 0);
  assert.equal([value.tokens, value.blocks, value.differences], [2262, 141, 0]);
  assert.match(
    value.firstKey,
    /^mooncake-kv-demo-\d+@gpt-oss-20b@store_tp:4@.*@tp_rank:0@.*@group:0@[0-9a-f]{64}$/,
  );
  assert.match(value.lastKey, /@tp_rank:3@/);
  assert.is(value.saved.bytes, String(141 * 16 * 24 * 8 * 128 * 2));
  assert.equal(value.first, { tokens: 2262, blocks: 141, hitTokens: 2256 });
  assert.is(value.second.hitTokens, 1344);
  const { turns, ...total } = value.conversation;
  assert.equal(
    turns.map(({ engine, user, promptTokens, hitTokens }) => [engine, user, promptTokens, hitTokens]),
    [
      ["A", 1, 1080, 0],
      // All of the prompt before, whose last token is in the sixteenth block from it.
      ["B", 1, 1300, 1072],
      ["A", 1, 1520, 1296],
      // Only as far as the window below the lost block.
      ["B", 1, 1740, 512],
      ["A", 2, 1080, 768],
    ],
  );
  const [first, , preempted, lossy] = turns;
  assert.equal([first!.loadedBytes, first!.jobs], [0, { save: 3, load: 0 }]);
  assert.equal(preempted!.admissions, [
    { tokens: 1520, hitTokens: 1296, loaded: true },
    { tokens: 1540, hitTokens: 1520, loaded: true },
  ]);
  assert.is(preempted!.preemptedAfter, 20);
  assert.equal(lossy!.admissions, [
    { tokens: 1740, hitTokens: 1536, loaded: false },
    { tokens: 1740, hitTokens: 512, loaded: true },
  ]);
  assert.is(lossy!.lostToken, 600);
  for (const { hitTokens, promptTokens, computedTokens, admissions } of turns) {
    const again = admissions.length > 1 && admissions[0]!.loaded ? 1540 - 1520 : 0;
    assert.is(computedTokens, promptTokens - hitTokens + 40 + again);
  }
  const sum = (member: "savedBytes" | "loadedBytes" | "hitTokens" | "promptTokens") =>
    turns.reduce((all, turn) => all + turn[member], 0);
  for (const member of ["savedBytes", "loadedBytes", "hitTokens", "promptTokens"] as const)
    assert.is(total[member], sum(member));
  assert.is(total.differences, 0);
});

test("a store that is too small, or none at all", async () => {
  const small = await run(["demo", "--store", "embedded:?capacity=16MiB"]);
  assert.is(small.exitCode, 1);
  assert.match(small.stderr, /^mooncake-kv: ERR_STORE: /);
  const none = await run(["demo", "--store", "nowhere:"]);
  assert.is(none.exitCode, 2);
});

test("a bar is never full while something is missing, and never empty while something was found", () => {
  assert.is(bar({ tokens: 100, hitTokens: 0 }, 4), "[░░░░]");
  assert.is(bar({ tokens: 100, hitTokens: 1 }, 4), "[█░░░]");
  assert.is(bar({ tokens: 100, hitTokens: 50 }, 4), "[██░░]");
  assert.is(bar({ tokens: 100, hitTokens: 99 }, 4), "[███░]");
  assert.is(bar({ tokens: 100, hitTokens: 100 }, 4), "[████]");
});

test.run();
