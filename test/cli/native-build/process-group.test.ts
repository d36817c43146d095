import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { runInGroup } from "../../../src/cli/native-build/process-group.js";
import { isMooncakeKvError } from "../../../src/errors.js";

const folder = mkdtempSync(join(tmpdir(), "mooncake-kv-"));
const script = fileURLToPath(new URL("fixtures/grouped.ts", import.meta.url));

/** The state of a process as Linux tells it; undefined when it is gone. A zombie runs no more. */
function running(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

async function until(condition: () => boolean, what: string): Promise<void> {
  const end = Date.now() + 60_000;
  while (!condition()) {
    assert.ok(Date.now() < end, `waited for: ${what}`);
    await sleep(20);
  }
}

for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const)
  for (const stubborn of signal === "SIGTERM" ? [false, true] : [false])
    test(`${signal} ends the whole group, then the process itself${stubborn ? "; also one that ignores it" : ""}`, async () => {
      const pids = join(folder, `${signal}-${stubborn}`);
      const shell = `${stubborn ? "trap '' TERM INT HUP; " : ""}sleep 600 >/dev/null 2>&1 & first=$!; sleep 600 >/dev/null 2>&1 & echo $$ $first $! > ${pids}.new; mv ${pids}.new ${pids}; wait; wait`;
      const child = spawn(process.execPath, ["--import", "tsx", script, shell], { stdio: "inherit" });
      const end = new Promise((resolve) => child.once("close", (_, died) => resolve(died)));
      let group: number[] = [];
      try {
        await until(() => existsSync(pids), "the group to start");
        group = readFileSync(pids, "utf8").trim().split(" ").map(Number);
        assert.is(group.length, 3);
        assert.ok(group.every(running));
        child.kill(signal);
        const late = sleep(60_000, "no end within a minute", { ref: false });
        assert.is(await Promise.race([end, late]), signal);
        await until(() => !group.some(running), "the end of what was killed last");
      } finally {
        // What a failure leaves would keep this process and its output open.
        child.kill("SIGKILL");
        for (const pid of group.filter(running)) process.kill(pid, "SIGKILL");
      }
    });

test("the status of the command, and 128 and more when a signal ended it", async () => {
  const run = (shell: string) => runInGroup("sh", ["-c", shell], { cwd: folder });
  assert.is(await run("exit 3"), 3);
  assert.is(await run("kill -9 $$"), 137);
  assert.is(await run("true"), 0);
});

test("output goes to the listener", async () => {
  let output = "";
  const onOutput = (text: string) => {
    output += text;
  };
  await runInGroup("sh", ["-c", "echo one; echo two >&2"], { cwd: folder, onOutput });
  assert.equal(output.trim().split("\n").sort(), ["one", "two"]);
});

test("a command that isn't there", async () => {
  try {
    await runInGroup(join(folder, "nothing"), [], { cwd: folder });
    assert.unreachable();
  } catch (error) {
    assert.ok(isMooncakeKvError(error, "ERR_NATIVE"), String(error));
    assert.match((error as Error).message, /nothing can't be started: .*ENOENT/);
  }
});

test("no listener stays", async () => {
  await runInGroup("true", [], { cwd: folder });
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) assert.is(process.listenerCount(name), 0, name);
});

test.after(() => rmSync(folder, { recursive: true }));

test.run();
