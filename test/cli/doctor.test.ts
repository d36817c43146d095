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
import { MooncakeCluster } from "../../src/conformance/contract/mooncake/cluster.js";
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
  assert.is(statusOf(found, "zeromq"), "ok");
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

/** The finding about a subject. */
function about({ findings }: Report, subject: string): Report["findings"][number] {
  return findings.find((one) => one.subject === subject)!;
}

test("a store that nobody can open is not approved", async () => {
  const bad: Record<string, RegExp> = {
    "foo:": /no store backend "foo"/,
    "embedded:?bogus=1": /no option "bogus"/,
    "mooncake-native:/nowhere/lib.so?master=127.0.0.1:1": /\/nowhere\/lib\.so can't be loaded/,
    "mooncake-native:/nowhere/lib.so": /needs the address of a master/,
    "mooncake-admin:http://no-such-host.invalid:9003": /no-such-host\.invalid/,
    "mooncake-admin:http://127.0.0.1:1": /127\.0\.0\.1:1/,
  };
  for (const [store, detail] of Object.entries(bad)) {
    const found = await report(["--store", store], { PATH });
    assert.is(found.healthy, false, store);
    assert.is(about(found, "store").status, "missing", store);
    assert.match(about(found, "store").detail, detail);
    assert.ok(about(found, "store").remedies.length > 0);
  }
  assert.is(statusOf(await report(["--store", "embedded:"], { PATH }), "store"), "ok");
});

test("a dead metadata server is named by a check of its own, a dead etcd of the master by the master's", async () => {
  await using master = await FakeMaster.start();
  const dead = await FakeMaster.start();
  await dead[Symbol.asyncDispose]();
  for (const metadata of [`http://${dead.address}/metadata`, `etcd://${dead.address}`, dead.address]) {
    const found = await report(
      ["--store", `mooncake:?master=${master.address}&metadataServer=${metadata}`],
      WITH_FAKE,
    );
    assert.is(statusOf(found, "master"), "ok");
    const { status, detail, remedies } = about(found, "metadata server");
    assert.is(status, "missing");
    assert.match(detail, `the metadata server ${metadata} does not answer`);
    assert.not.match(remedies.join(), "release");
    assert.is(statusOf(found, "connection"), "skipped");
  }
  const behindEtcd = await report(["--store", `mooncake:?master=etcd://${dead.address}`], WITH_FAKE);
  assert.is(statusOf(behindEtcd, "master"), "missing");
  assert.match(about(behindEtcd, "master").detail, "no etcd answers at");
  const listening = await report(["--store", `mooncake:?master=etcd://${master.address}`], WITH_FAKE);
  assert.match(about(listening, "master").detail, /the etcd of .* accepts connections/);
  const peers = await report(["--store", `mooncake:?master=${master.address}`], WITH_FAKE);
  assert.is(about(peers, "metadata server"), undefined);
});

test("a size that can't be is shown as in the file", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mooncake-kv-doctor-"));
  const file = join(folder, "mooncake.json");
  writeFileSync(
    file,
    JSON.stringify({ master_server_address: "127.0.0.1:1", global_segment_size: 15_000_000 }),
  );
  const found = await report(["--store", `mooncake:${file}`], WITH_FAKE);
  assert.is(statusOf(found, "configuration"), "missing");
  assert.match(
    about(found, "configuration").detail,
    /global_segment_size is 15000000; it is 0, or at least 16MiB/,
  );
  rmSync(folder, { recursive: true });
});

test("a Python that is none, in the URI", async () => {
  const found = await report(["--store", "mooncake:?master=127.0.0.1:1&python="], WITH_FAKE);
  assert.is(statusOf(found, "Python"), "missing");
  assert.match(about(found, "configuration").detail, /^python is ""/);
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

if (installation)
  test("the real Mooncake: an engine's file mounts nothing, and what this command gives is no pool", async () => {
    const { python } = installation!;
    const env = { PATH, MOONCAKE_KV_PYTHON: python, ...(ADDON ? { MOONCAKE_KV_ADDON: ADDON } : {}) };
    await using cluster = await MooncakeCluster.start(installation!, { segmentBytes: 0 });
    const master = cluster.masterAddress;
    const folder = mkdtempSync(join(tmpdir(), "mooncake-kv-doctor-"));
    const file = join(folder, "mooncake.json");
    writeFileSync(
      file,
      JSON.stringify({
        mode: "embedded",
        global_segment_size: "64MB",
        master_server_address: master,
        metadata_server: "P2PHANDSHAKE",
        protocol: "tcp",
      }),
    );
    const poor = await report(["--store", `mooncake:${file}`], env);
    assert.is(poor.healthy, false);
    assert.match(about(poor, "configuration").detail, "a segment of 64 MiB");
    assert.match(about(poor, "connection").detail, "giving no memory");
    assert.match(about(poor, "segment").detail, "no process gives memory to this cluster");
    assert.is(await mountedSegments(cluster), 0);

    const giver = await report(["--store", `mooncake:?master=${master}&globalSegmentSize=64MiB`], env);
    assert.is(giver.healthy, false);
    assert.match(about(giver, "own memory").detail, "64 MiB given to the cluster, and taken back");
    assert.match(about(giver, "segment").detail, "no process gives memory to this cluster");
    const greedy = await report(["--store", `mooncake:?master=${master}&globalSegmentSize=2048GB`], env);
    assert.is(statusOf(greedy, "own memory"), "missing");
    assert.match(about(greedy, "own memory").detail, /2 TiB of memory.*allocate/);
    assert.not.match(about(greedy, "own memory").remedies.join(), "release");

    await cluster.startOwner("O", 32 << 20);
    const rich = await report(["--store", `mooncake:${file}`], env);
    assert.is(rich.healthy, true);
    assert.match(about(rich, "segment").detail, /^the object lay at 127\.0\.0\.1:\d+$/);
    assert.is(statusOf(rich, "round trip"), "ok");

    const notMetadata = `mooncake:?master=${master}&metadataServer=${cluster.adminUrl}/metadata`;
    const refused = about(await report(["--store", notMetadata], env), "connection");
    assert.match(refused.detail, `the metadata server ${cluster.adminUrl}/metadata did not do its part`);
    assert.not.match(refused.remedies.join(), "release");
    rmSync(folder, { recursive: true });
  });

/** How often a segment was mounted at a master. */
async function mountedSegments(cluster: MooncakeCluster): Promise<number> {
  const metrics = await (await fetch(`${cluster.adminUrl}/metrics`)).text();
  return Number(/^master_mount_segment_requests_total (\d+)$/m.exec(metrics)![1]);
}

test.run();
