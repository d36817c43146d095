import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { FAKE, FakeMaster } from "./fake.js";
import { freeze, isAlive, until } from "./setup.js";

// What becomes of the sidecar when the process that started it ends, in all the ways that a process can.

const FIXTURE = fileURLToPath(new URL("fixtures/node-process.ts", import.meta.url));

interface Started {
  readonly child: ChildProcess;
  readonly sidecar: number;
  readonly lines: AsyncIterator<string>;
}

async function start(how: string): Promise<Started> {
  const child = spawn(process.execPath, ["--import", "tsx", FIXTURE, how], {
    stdio: ["ignore", "pipe", "inherit"],
    // A group of its own, which can be interrupted as a terminal does it.
    detached: true,
  });
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  const sidecar = Number((await lines.next()).value);
  return { child, sidecar, lines };
}

async function exitOf(child: ChildProcess): Promise<[number | null, string | null]> {
  if (child.exitCode !== null || child.signalCode !== null) return [child.exitCode, child.signalCode];
  return (await once(child, "exit")) as [number | null, string | null];
}

test("killed in the middle of a call: the sidecar ends at once", async () => {
  const { child, sidecar } = await start("killed in the middle of a call");
  assert.ok(isAlive(sidecar));
  child.kill("SIGKILL");
  await exitOf(child);
  const ms = await until("the sidecar is gone", () => !isAlive(sidecar), 2_000);
  assert.ok(ms < 1_000, `${ms} ms`);
});

test("killed while the sidecar is stopped: the sidecar ends all the same", async () => {
  const { child, sidecar } = await start("killed in the middle of a call");
  await freeze(sidecar);
  child.kill("SIGKILL");
  await exitOf(child);
  await until("the sidecar is gone", () => !isAlive(sidecar), 2_000);
});

test("a worker thread that is terminated leaves no sidecar, and no zombie", async () => {
  const master = await FakeMaster.start();
  const script = `
    import { register } from ${JSON.stringify(import.meta.resolve("tsx/esm/api"))};
    register();
    const { openStore } = await import(${JSON.stringify(new URL("../../../src/store/open-store.ts", import.meta.url).href)});
    const { parentPort } = await import("node:worker_threads");
    const store = await openStore({
      backend: "mooncake", master: ${JSON.stringify(master.address)}, python: "python3", staging: "1MiB",
      environment: { PYTHONPATH: ${JSON.stringify(FAKE)} },
    });
    void store.exists(["sleep 60"]);
    parentPort.postMessage(store.sidecarPid);`;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(script)}`), { execArgv: [] });
  const [pid] = (await once(worker, "message")) as [number];
  assert.ok(isAlive(pid));
  await worker.terminate();
  await until("not even a zombie is left", () => !existsSync(`/proc/${pid}`), 2_000);
  await master[Symbol.asyncDispose]();
});

test("Ctrl-C reaches Node, and the sidecar works on until Node decides", async () => {
  const { child, sidecar, lines } = await start("Ctrl-C");
  process.kill(-child.pid!, "SIGINT");
  assert.is((await lines.next()).value, "restarts 0, code 0");
  assert.equal(await exitOf(child), [0, null]);
  await until("the sidecar is gone", () => !isAlive(sidecar), 2_000);
});

for (const how of ["exit without close", "end without close"])
  test(`${how}: nothing stays behind, and nothing keeps the process`, async () => {
    const { child, sidecar } = await start(how);
    assert.equal(await exitOf(child), [0, null]);
    await until("the sidecar is gone", () => !isAlive(sidecar), 2_000);
  });

test.run();
