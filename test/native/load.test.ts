import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ADDON_VARIABLE, addonCandidates, packageRoot } from "../../src/native/locations.js";
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

test("without the variable three places are tried, in order", () => {
  const root = packageRoot();
  const paths = addonCandidates(root, {});
  assert.equal(
    paths.map((path) => path.slice(root.length + 1)),
    [
      "build/RelWithDebInfo/mooncake_kv.node",
      "build/Release/mooncake_kv.node",
      `prebuilds/${process.platform}-${process.arch}/mooncake_kv.node`,
    ],
  );
  assert.equal(addonCandidates(root, { [ADDON_VARIABLE]: "/x/y.node" }), ["/x/y.node"]);
});

test.after(() => rmSync(folder, { recursive: true }));
test.run();
