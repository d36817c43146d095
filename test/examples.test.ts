import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { runProcess } from "./runner/process.js";

// Every example runs against the built package, as a user's program would. What each must print at least:
const EXPECTED: Readonly<Record<string, RegExp>> = {
  "save-and-load.ts":
    /rank 0 of 2 loaded 24 objects, written by ranks 0 and 1\nrank 1 of 2 loaded 24 objects, written by ranks 2 and 3/,
  "prompt-lookup.ts":
    /the conversation: 48 of 100 tokens\nanother prompt: 0 of 99 tokens\nwithout a master: unknown: .*RPC_FAIL \(-900/,
  "lookup-client.ts": /48 of 100 tokens are stored/,
  "kv-aware-proxy.ts":
    /the same again: engine a, 64 of 65 tokens expected, 64 found\na longer one: engine a, 64 of 129 .*\nanother topic: engine b, 0 of/,
  "event-subscriber.ts": /the conversation: engine-b 144 tokens, engine-a 64 tokens/,
  "validate-metadata.ts":
    /loads 32 tokens, in \d+ bytes\na hit of 24 tokens, 1 tail key boundary\nLoadSpec of vllm-0.33 at \$\.vllm_cached_tokens: -1 /,
};

for (const file of readdirSync("examples").filter((name) => name.endsWith(".ts")))
  test(`examples/${file}`, async () => {
    const expected = EXPECTED[file];
    assert.ok(expected, `${file} is not in this test yet`);
    const { code, output } = await runProcess(
      process.execPath,
      ["--import", "tsx", join("examples", file)],
      60_000,
    );
    assert.is(code, 0, output);
    assert.match(output, expected);
  });

test.run();
