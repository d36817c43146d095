import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { configHandlers } from "../../../src/conformance/vectors/config.js";
import { runVectorLines } from "../../../src/conformance/vectors/runner.js";
import { isMooncakeKvError } from "../../../src/errors.js";
import {
  loadMooncakeConfig,
  mooncakeConfig,
  mooncakeSetupArguments,
  parseMooncakeConfig,
  preferredSegment,
} from "../../../src/store/cluster/mooncake-config.js";
import { parseMooncakeSize } from "../../../src/store/cluster/mooncake-size.js";
import { rejects } from "../helpers.js";

const throwsConfig = (call: () => unknown, message: RegExp): void => {
  assert.throws(
    call,
    (error: unknown) => isMooncakeKvError(error, "ERR_CONFIG") && message.test(error.message),
  );
};

test("every recorded case of the config file, its environment and its sizes", async () => {
  const lines = readFileSync("test/vectors/config.jsonl", "utf8")
    .split("\n")
    .filter((line) => line !== "" && Object.hasOwn(configHandlers, (JSON.parse(line) as { op: string }).op));
  const report = await runVectorLines("config.jsonl", lines, configHandlers);
  assert.equal(report.failures, []);
  assert.ok(report.total >= 171, String(report.total));
});

test("sizes of vLLM's dialect", () => {
  assert.is(parseMooncakeSize("1.5 gb"), 1_610_612_736n);
  assert.is(parseMooncakeSize("\u0663\u0662kb"), 32n << 10n);
  assert.is(parseMooncakeSize("\u{1d7d8}\u{1d7e1}\u{1d7e3}"), 91n); // digits of two touching runs
  assert.is(parseMooncakeSize("\x1c7\x85"), 7n);
  throwsConfig(() => parseMooncakeSize("\ufeff7"), /has another form/);
  throwsConfig(() => parseMooncakeSize("9".repeat(400)), /is too large/);
  throwsConfig(() => parseMooncakeSize(Number.NaN), /neither a number nor text/);
  throwsConfig(() => parseMooncakeSize("4GiB", "local_buffer_size"), /^local_buffer_size is "4GiB"/);
});

test("mode and segment size must agree, and the error names both", () => {
  throwsConfig(
    () => mooncakeConfig({ global_segment_size: 0 }),
    /mode is "embedded" but global_segment_size is 0/,
  );
  throwsConfig(
    () => mooncakeConfig({ mode: "standalone-store", global_segment_size: "80GB" }),
    /mode is "standalone-store" but global_segment_size is 85899345920/,
  );
  assert.is(mooncakeConfig({ mode: "standalone-store", global_segment_size: 0 }).globalSegmentSize, 0n);
  throwsConfig(() => mooncakeConfig({ local_buffer_size: 0 }), /local_buffer_size is 0; it is larger than 0/);
  throwsConfig(() => mooncakeConfig({ mode: "Embedded" }), /mode is "Embedded"; it is "embedded" or/);
});

test("reads a file, by path or by the environment", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mooncake-config-"));
  const path = join(folder, "mooncake.json");
  try {
    writeFileSync(
      path,
      '{"master_server_address": "m:50051", "global_segment_size": "1GB", "protocol": "tcp"}',
    );
    for (const config of [
      await loadMooncakeConfig(path, {}),
      await loadMooncakeConfig(undefined, { MOONCAKE_CONFIG_PATH: path }),
    ]) {
      assert.is(config.masterServerAddress, "m:50051");
      assert.is(config.globalSegmentSize, 1n << 30n);
      assert.is(mooncakeSetupArguments(config, "h").tenantId, undefined);
    }
    writeFileSync(path, '{"mode": "other"}');
    await rejects(() => loadMooncakeConfig(path), "ERR_CONFIG", /mooncake\.json: mode is "other"/);
    await rejects(() => loadMooncakeConfig(join(folder, "none")), "ERR_CONFIG", /can't be read: ENOENT/);
    await rejects(() => loadMooncakeConfig(undefined, {}), "ERR_CONFIG", /set MOONCAKE_CONFIG_PATH/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("what is no config", () => {
  throwsConfig(() => parseMooncakeConfig("{"), /is no JSON/);
  throwsConfig(() => parseMooncakeConfig("[]"), /the Mooncake config is \[\]; it is a JSON object/);
  throwsConfig(() => mooncakeConfig(null), /is null/);
  throwsConfig(() => preferredSegment({ preferred_segment: " " }, "e"), /preferred_segment is " "/);
  assert.is(mooncakeConfig({ toString: 1 }).tenantId, "default");
});

test.run();
