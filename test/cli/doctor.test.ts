import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { Command } from "commander";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { CommandContext } from "../../src/cli/command.js";
import { define } from "../../src/cli/commands/doctor.js";
import type { Finding } from "../../src/cli/doctor/finding.js";
import { Output } from "../../src/cli/output.js";
import { MooncakeCluster } from "../../src/testing/contract/mooncake/cluster.js";
import { FAKE, FakeMaster } from "../store/mooncake/fake.js";
import { installation } from "../store/mooncake/setup.js";

const PATH = process.env["PATH"]!;
const WITH_FAKE = { PATH, PYTHONPATH: FAKE, MOONCAKE_KV_PYTHON: "python3" };
const ADDON = process.env["MOONCAKE_KV_ADDON"];

interface Report {
  readonly healthy: boolean;
  readonly findings: readonly (Finding & { readonly remedies: readonly string[] })[];
  readonly log?: string;
}

async function doctor(
  argv: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ exitCode: number; text: string }> {
  const stdout = new PassThrough();
  const chunks: Buffer[] = [];
  stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  const stderr = new PassThrough();
  const context: CommandContext = {
    io: { stdin: new PassThrough(), stdout, stderr, env },
    env,
    stdout: new Output(stdout),
    stderr: new Output(stderr),
    exitCode: 0,
  };
  const command = new Command("doctor").exitOverride();
  define(command, context);
  await command.parseAsync(argv, { from: "user" });
  await context.stdout.flush();
  return { exitCode: context.exitCode, text: Buffer.concat(chunks).toString() };
}

async function report(argv: readonly string[], env: Readonly<Record<string, string>>): Promise<Report> {
  const { exitCode, text } = await doctor([...argv, "--json"], env);
  const found = JSON.parse(text) as Report;
  assert.is(exitCode, found.healthy ? 0 : 1);
  return found;
}

function statusOf({ findings }: Report, subject: string): string {
  const finding = findings.find((one) => one.subject === subject);
  assert.ok(finding, subject);
  return finding.status;
}

test("embedded: needs the addon and nothing else", async () => {
  const found = await report(["--store", "embedded:"], { PATH: "/nonexistent" });
  assert.is(found.healthy, true);
  assert.is(statusOf(found, "native addon"), "ok");
  assert.is(statusOf(found, "CMake"), "warning");
  assert.is(statusOf(found, "Python"), "warning");
  assert.not(found.findings.some(({ subject }) => subject === "master"));
});

test("without Python and configuration: what is missing has numbered remedies, and the status is 1", async () => {
  const { exitCode, text } = await doctor([], { PATH: "/nonexistent" });
  assert.is(exitCode, 1);
  assert.match(text, /^MISSING +Python +python3 does not work/m);
  assert.match(text, /^- +Mooncake package +needs Python/m);
  assert.match(text, /^MISSING +configuration +the mooncake store needs the address of a master/m);
  assert.match(text, /^mooncake: can't be used: Python, configuration$/m);
  assert.match(text, /^ {2}1\. Python: .*\n {2}2\. Python: .*\n {2}3\. configuration: /m);
});

test("a Python without Mooncake's package: how to install it", async () => {
  const found = await report([], {
    PATH,
    PYTHONPATH: "",
    PYTHONNOUSERSITE: "1",
    MOONCAKE_KV_PYTHON: "python3",
  });
  assert.is(statusOf(found, "Python"), "ok");
  const wheel = found.findings.find(({ subject }) => subject === "Mooncake package")!;
  // Where the system's own Python has the package there is nothing to mend.
  if (wheel.status !== "ok") assert.match(wheel.remedies[0]!, /pip install mooncake-transfer-engine/);
});

test("configuration: a file that is none, a bad address, a master that is not there", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mooncake-kv-doctor-"));
  const file = join(folder, "mooncake.json");
  writeFileSync(file, "{");
  const broken = await report(["--store", `mooncake:${file}`], WITH_FAKE);
  const configuration = broken.findings.find(({ subject }) => subject === "configuration")!;
  assert.is(configuration.status, "missing");
  assert.match(configuration.detail, file);

  const dead = await FakeMaster.start();
  await dead[Symbol.asyncDispose]();
  writeFileSync(file, JSON.stringify({ master_server_address: dead.address, protocol: "tcp" }));
  const absent = await report([], { ...WITH_FAKE, MOONCAKE_CONFIG_PATH: file });
  assert.is(statusOf(absent, "configuration"), "ok");
  const master = absent.findings.find(({ subject }) => subject === "master")!;
  assert.is(master.status, "missing");
  assert.match(master.detail, dead.address);
  assert.is(statusOf(absent, "connection"), "skipped");
  assert.is(statusOf(absent, "round trip"), "skipped");
  assert.match(
    (await report(["--store", "mooncake:?master=a:b:c"], WITH_FAKE)).findings.at(-5)!.detail,
    /written host:port/,
  );
  rmSync(folder, { recursive: true });
});

test("a cluster that works: every check, and a value that goes there and back", async () => {
  await using master = await FakeMaster.start();
  const env = { ...WITH_FAKE, ...(ADDON ? { MOONCAKE_KV_ADDON: ADDON } : {}) };
  const found = await report(["--store", `mooncake:?master=${master.address}`, "--log"], env);
  for (const subject of ["master", "connection", "segment", "round trip"])
    assert.is(statusOf(found, subject), "ok", JSON.stringify(found.findings));
  assert.type(found.log, "string");
  const refused = await report(["--store", `mooncake:?master=${master.address}`], {
    ...env,
    FAKE_SETUP: "-600",
  });
  assert.is(statusOf(refused, "connection"), "missing");
  assert.is(statusOf(refused, "round trip"), "skipped");
});

test("bad input is a usage error", async () => {
  for (const store of ["nonsense", "mooncake:?color=red"]) {
    let message = "";
    await doctor(["--store", store], { PATH }).catch((error: Error) => {
      message = error.message;
    });
    assert.match(message, /no store URI|no option "color"/);
  }
});

if (installation)
  test("the real Mooncake: a round trip, and a cluster without memory", async () => {
    const { python } = installation!;
    const env = { PATH, MOONCAKE_KV_PYTHON: python, ...(ADDON ? { MOONCAKE_KV_ADDON: ADDON } : {}) };
    await using cluster = await MooncakeCluster.start(installation!, { segmentBytes: 0 });
    const store = ["--store", `mooncake:?master=${cluster.masterAddress}`];
    const poor = await report(store, env);
    assert.is(statusOf(poor, "system libraries"), "ok");
    assert.match(
      poor.findings.find(({ subject }) => subject === "Mooncake package")!.detail,
      /mooncake-transfer-engine/,
    );
    assert.is(statusOf(poor, "connection"), "ok");
    const segment = poor.findings.find(({ subject }) => subject === "segment")!;
    assert.is(segment.status, "missing");
    assert.match(segment.remedies.join(), /mooncake_client/);
    await cluster.startOwner("O", 32 << 20);
    const { exitCode, text } = await doctor(store, env);
    assert.is(exitCode, 0, text);
    assert.match(text, /round trip +100000 bytes put, read back equal, removed/);
    assert.match(text, /can be used\n$/);
  });

test.run();
