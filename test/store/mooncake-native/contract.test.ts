import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { runContractFile } from "../../../src/conformance/contract/index.js";
import { nativeBackend } from "../../../src/conformance/contract/mooncake-native-world.js";
import { ownLibrary } from "./own-library.js";

// What the real store answered, scenario by scenario, against the native store on our own libmooncake_store.so.

test("every scenario that the C interface can express", async () => {
  const report = await runContractFile(
    join("test", "vectors", "mooncake_contract.jsonl"),
    nativeBackend(ownLibrary()),
  );
  const failures = report.failures.map(
    ({ id, path, expected, actual }) =>
      `${id} ${path}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`,
  );
  assert.is(report.failed, 0, failures.join("\n"));
  assert.ok(report.passed >= 60, `${report.passed} scenarios were run`);
  console.log(`${report.passed} of ${report.total} scenarios; not run:`);
  const reasons = new Map<string, number>();
  for (const { id, reason } of report.otherBackendOnly)
    if (!id.includes(".steps[")) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  for (const [reason, count] of reasons) console.log(`  ${count}: ${reason}`);
});

test.run();
