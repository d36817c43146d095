import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  ADDON_VARIABLE,
  addonCandidates,
  cacheFolder,
  packageRoot,
  versionOfPackage,
} from "../../src/native/locations.js";
import { runFixture } from "./helpers/child.js";

interface Failure {
  readonly code: string;
  readonly message: string;
  readonly details: { readonly attempts: readonly { path: string; reason: string }[] };
}

interface Report {
  readonly loadedByImport: boolean;
  readonly available: boolean;
  readonly load: Failure | "fine";
  readonly kernel: Failure | "fine";
  readonly store: Failure | "fine";
}

const folder: string = mkdtempSync(join(tmpdir(), "mooncake-kv-"));

async function report(addon: string): Promise<Report> {
  const end = await runFixture("load.ts", { environment: { [ADDON_VARIABLE]: addon } });
  assert.is(end.code, 0, end.stderr);
  return JSON.parse(end.stdout) as Report;
}

function failure(outcome: Failure | "fine"): Failure {
  if (outcome === "fine") throw new Error("the addon was loaded");
  return outcome;
}

test("importing loads nothing; using does", async () => {
  const fine = await report("");
  assert.is(fine.loadedByImport, false);
  assert.is(fine.available, true);
  assert.is(fine.load, "fine");
});

test("a missing file: what was tried and how to mend it", async () => {
  const path = join(folder, "missing.node");
  const { available, load, kernel, store } = await report(path);
  assert.is(available, false);
  for (const { code, message, details } of [load, kernel, store].map(failure)) {
    assert.is(code, "ERR_NATIVE");
    assert.match(message, `${path}: no such file`);
    assert.match(message, `1. ${ADDON_VARIABLE} is set`);
    assert.match(message, /\n {2}2\. .*npm run build:native.*C\+\+20 compiler and CMake/);
    assert.equal(details.attempts, [{ path, reason: "no such file" }]);
  }
});

test("a file that is no addon", async () => {
  const path = join(folder, "bad.node");
  writeFileSync(path, "not a library");
  const { load } = await report(path);
  const { attempts } = failure(load).details;
  assert.is(attempts.length, 1);
  assert.is.not(attempts[0]!.reason, "no such file");
});

test("a module that is not this package's addon", async () => {
  const path = join(folder, "other.cjs");
  writeFileSync(path, "module.exports = { bindingVersion: 0 };");
  const { load } = await report(path);
  assert.match(failure(load).message, "its binding version is 0; this package needs 3");
});

test("without the variable four places are tried, in order: own builds before what the package brings", () => {
  const root = packageRoot();
  const cache = join(folder, "cache");
  const platform = `${process.platform}-${process.arch}`;
  assert.equal(addonCandidates(root, { XDG_CACHE_HOME: cache }), [
    join(root, "build/RelWithDebInfo/mooncake_kv.node"),
    join(root, "build/Release/mooncake_kv.node"),
    join(cache, "mooncake-kv", `${versionOfPackage(root)}-${platform}`, "RelWithDebInfo/mooncake_kv.node"),
    join(root, "prebuilds", platform, "mooncake_kv.node"),
  ]);
  assert.equal(addonCandidates(root, { [ADDON_VARIABLE]: "/x/y.node" }), ["/x/y.node"]);
});

test("a cache folder that is not absolute is ignored, as the specification of XDG says", () => {
  const expected = cacheFolder("/p", { HOME: "/h" });
  assert.ok(expected.startsWith("/h/.cache/mooncake-kv/"), expected);
  assert.is(cacheFolder("/p", { HOME: "/h", XDG_CACHE_HOME: "x" }), expected);
});

test.after(() => rmSync(folder, { recursive: true }));
test.run();
