import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { isAlive, until } from "./setup.js";

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
