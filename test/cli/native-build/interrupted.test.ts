import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";

// The real thing: CMake, ninja or make, and compilers at work, when the build is told to end.

const root = realpathSync(mkdtempSync(join(tmpdir(), "mooncake-kv-")));
const script = fileURLToPath(new URL("fixtures/build.ts", import.meta.url));

/** Command lines of running processes that have to do with a folder: they name it, or work in it. */
function processesOf(folder: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        const place = realpathSync(`/proc/${pid}/cwd`);
        return line.includes(folder) || place.startsWith(folder) ? [line] : [];
      } catch {
        return []; // it ended, or is another user's
      }
    });
}

for (const signal of ["SIGTERM", "SIGINT"] as const)
  test(`${signal} to a build leaves no compiler behind`, async () => {
    const folder = join(root, signal);
    for (const part of ["native", "CMakeLists.txt", "package.json"])
      cpSync(part, join(folder, part), { recursive: true });
    const child = spawn(process.execPath, ["--import", "tsx", script, folder], { stdio: "inherit" });
    const end = new Promise((resolve) => child.once("close", (_, died) => resolve(died)));
    const deadline = Date.now() + 60_000;
    while (!processesOf(folder).some((line) => /\bcc1plus\b|\bclang\b.* -cc1\b/.test(line))) {
      assert.ok(Date.now() < deadline, `no compiler started: ${processesOf(folder).join("\n")}`);
      await sleep(20);
    }
    child.kill(signal);
    assert.is(await end, signal);
    assert.equal(processesOf(folder), []);
    assert.not(existsSync(join(folder, "build", "RelWithDebInfo", "mooncake_kv.node")));
  });

test.after(() => rmSync(root, { recursive: true }));

test.run();
