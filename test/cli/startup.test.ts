import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";

/** All own files that loading `entry` loads: static imports, without those of types. */
function loadedFiles(entry: string, seen: Set<string> = new Set()): Set<string> {
  if (seen.has(entry)) return seen;
  seen.add(entry);
  const source = readFileSync(entry, "utf8");
  for (const [, clause, target] of source.matchAll(/^(?:import|export)\s([^;]*?)\sfrom "(\.[^"]+)";/gms))
    if (!clause!.startsWith("type "))
      loadedFiles(relative("", join(dirname(entry), target!.replace(/\.js$/, ".ts"))), seen);
  return seen;
}

test("the help is fast since main loads no command and no room of the SDK", () => {
  const files = [...loadedFiles("src/cli/main.ts")];
  const rest = files.filter((file) => !/^src\/cli\/[a-z-]+\.ts$/.test(file));
  assert.ok(files.includes("src/cli/registry.ts"), "the walk must find the registry");
  assert.equal(rest.sort(), ["src/checks/nearest.ts", "src/errors.ts", "src/native/locations.ts"]);
});

test("a command loads only itself: hash needs no layout, store or addon", () => {
  const files = [...loadedFiles("src/cli/commands/hash.ts")];
  assert.ok(files.includes("src/hash/index.ts"));
  assert.equal(
    files.filter((file) => /^src\/(?:layout|request|native|store|testing)\//.test(file)),
    [],
  );
});

test.run();
