import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { test } from "uvu";
import * as assert from "uvu/assert";
import manifest from "../../package.json" with { type: "json" };
import { packageChecks } from "../../src/cli/doctor/package-checks.js";
import { run, runJson } from "./helpers/run.js";

/** A folder with packages of these versions. */
function withPackages(versions: Readonly<Record<string, string>>, use: (folder: string) => Promise<void>) {
  const folder = mkdtempSync(join(tmpdir(), "mooncake-kv-packages-"));
  for (const [name, version] of Object.entries(versions)) {
    mkdirSync(join(folder, "node_modules", name), { recursive: true });
    writeFileSync(join(folder, "node_modules", name, "package.json"), JSON.stringify({ name, version }));
  }
  return use(folder).finally(() => rmSync(folder, { recursive: true }));
}

test("every optional peer is looked at, and those of this checkout are there", async () => {
  const found = await packageChecks(true);
  assert.equal(found.map(({ subject }) => subject).sort(), Object.keys(manifest.peerDependencies).sort());
  for (const { status, detail } of found) assert.is(status, "ok", detail);
  assert.match(
    found.find(({ subject }) => subject === "zeromq")!.detail,
    /^\d+\.\d+\.\d+, loads, for lookup/,
  );
});

test("one that is absent or too old is missing only for what needs it", async () => {
  await withPackages(
    { zeromq: "5.9.9", "cmake-js": "7.3.0", "gpt-tokenizer": "10.0.0-rc.1" },
    async (folder) => {
      for (const compiling of [true, false]) {
        const found = Object.fromEntries(
          (await packageChecks(compiling, [folder])).map((finding) => [finding.subject, finding]),
        );
        const needed = compiling ? "missing" : "warning";
        assert.equal([found["cmake-js"]!.status, found["node-addon-api"]!.status], [needed, needed]);
        assert.match(found["cmake-js"]!.detail, "7.3.0; mooncake-kv build needs 8.0.0 or later");
        assert.is(found["zeromq"]!.status, "warning");
        assert.match(found["zeromq"]!.detail, "5.9.9");
        assert.is(found["prom-client"]!.status, "warning");
        assert.equal(found["prom-client"]!.remedies, ["npm install prom-client"]);
        assert.is(found["gpt-tokenizer"]!.status, "ok");
      }
    },
  );
});

test("doctor lists them", async () => {
  const { value } = await runJson(["doctor", "--store", "embedded:"], { env: { PATH: "/nonexistent" } });
  const subjects = (value["findings"] as { subject: string }[]).map(({ subject }) => subject);
  for (const name of ["zeromq", "prom-client", "cmake-js", "@huggingface/tokenizers"])
    assert.ok(subjects.includes(name), name);
});

test("an addon that is missing is no fault of a store that is HTTP; a password stays out of the report", async () => {
  const admin = "mooncake-admin:http://user:secret@127.0.0.1:1";
  const { exitCode, value } = await runJson(["doctor", "--store", admin]);
  assert.equal([exitCode, value["store"]], [1, "mooncake-admin:http://***@127.0.0.1:1"]);
  assert.not.match(JSON.stringify(value), "secret");
  const { stderr } = await run(["doctor", "--store", "1://user:secret@host"]);
  assert.not.match(stderr, "secret");
  const program = `
    import { buildChecks } from "./src/cli/doctor/build-checks.ts";
    for (const needed of [true, false])
      console.log((await buildChecks({ PATH: "/nonexistent" }, needed)).map(({ status }) => status).join());
  `;
  const argv = ["--import", "tsx", "--input-type=module", "--eval", program];
  const env = { ...process.env, MOONCAKE_KV_ADDON: "/nonexistent.node" };
  const { stdout } = await promisify(execFile)(process.execPath, argv, { env });
  assert.is(stdout, "missing,missing,missing\nwarning,warning,warning\n");
});

test.run();
