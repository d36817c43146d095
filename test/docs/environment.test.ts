import { readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { repositoryFiles } from "../structure/files.js";

/** Names of environment variables, as sources write them. Those of `src/conformance/vectors` are inputs of vectors. */
const NAME = /["'`]((?:MOONCAKE|MC|XDG|PYTHON|VLLM)_?[A-Z0-9_]{3,})["'`]/g;

/** What has such a name and is no variable that is read: a variable of CMake, vLLM's defaults that programs hand in. */
const OTHERS = new Set([
  "MOONCAKE_KV_NODE_ADDON_API",
  "MOONCAKE_NO_AVAILABLE_HANDLE",
  "MC_TCP_MAX_QUEUED_TRANSFERS_PER_PEER",
]);

test("the page has every variable that the sources read, and no other", () => {
  const read = new Set<string>();
  for (const file of repositoryFiles())
    if (/^src\/.*\.(ts|py)$/.test(file) && !file.startsWith("src/conformance/vectors/"))
      for (const [, name] of readFileSync(file, "utf8").matchAll(NAME))
        if (!OTHERS.has(name!)) read.add(name!);
  assert.ok(read.size > 10, [...read].join());
  const page = readFileSync("docs/environment.md", "utf8");
  const told = [...page.matchAll(/^\| (`[^|]*`) \|/gm)].flatMap((row) =>
    [...row[1]!.matchAll(/`([A-Z0-9_]+)`/g)].map((name) => name[1]!),
  );
  assert.equal([...read].filter((name) => !told.includes(name)).sort(), [], "not on the page");
  assert.equal(told.filter((name) => !read.has(name)).sort(), [], "read by nobody");
});

test.run();
