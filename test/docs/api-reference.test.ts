import { rmSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { runProcess } from "../runner/process.js";

test("the API reference builds without a warning: no link leads nowhere", async () => {
  const out = "build/api-test";
  const { code, output } = await runProcess("node_modules/.bin/typedoc", ["--out", out], 240_000);
  rmSync(out, { recursive: true, force: true });
  assert.is(code, 0, output);
});

test.run();
