import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { buildNativeAddon } from "../../../src/cli/native-build/native-build.js";
import { isMooncakeKvError, type MooncakeKvError } from "../../../src/errors.js";
import { addonCandidates } from "../../../src/native/locations.js";

// The compiler itself is tried by the native tests; here a stand-in for cmake-js shows what is asked of it.

const root = mkdtempSync(join(tmpdir(), "mooncake-kv-"));

function packageWith(name: string, script?: string): string {
  const folder = join(root, name);
  for (const tool of ["cmake-js", "node-addon-api"]) {
    const home = join(folder, "node_modules", tool);
    mkdirSync(home, { recursive: true });
    writeFileSync(join(home, "package.json"), JSON.stringify({ name: tool, bin: { [tool]: "./run.cjs" } }));
    if (script !== undefined) writeFileSync(join(home, "run.cjs"), script);
  }
  writeFileSync(join(folder, "package.json"), "{}");
  writeFileSync(join(folder, "CMakeLists.txt"), "");
  return folder;
}

async function failure(folder: string, environment: NodeJS.ProcessEnv = {}): Promise<MooncakeKvError> {
  try {
    await buildNativeAddon(folder, { quiet: true, environment });
  } catch (error) {
    if (isMooncakeKvError(error, "ERR_NATIVE")) return error;
    throw error;
  }
  throw new Error("the build did not fail");
}

test("asks cmake-js for a RelWithDebInfo build of the package", async () => {
  const folder = packageWith(
    "good",
    `const { mkdirSync, writeFileSync } = require("node:fs");
     mkdirSync("build/RelWithDebInfo", { recursive: true });
     writeFileSync("build/RelWithDebInfo/mooncake_kv.node", "");
     writeFileSync("arguments.json", JSON.stringify(process.argv.slice(2)));`,
  );
  const addon = await buildNativeAddon(folder, { quiet: true });
  assert.is(addon, join(folder, "build", "RelWithDebInfo", "mooncake_kv.node"));
  assert.ok(existsSync(addon));
  const { default: argv } = await import(join(folder, "arguments.json"), { with: { type: "json" } });
  assert.equal(argv, [
    "build",
    ...["-B", "RelWithDebInfo", "-d", folder, "-O", join(folder, "build")],
    `--CDMOONCAKE_KV_NODE_ADDON_API=${join(folder, "node_modules", "node-addon-api")}`,
  ]);
});

test("a failed build keeps its exit status and what it said", async () => {
  const folder = packageWith(
    "bad",
    `console.log("one"); console.error("no compiler found"); process.exit(3);`,
  );
  const error = await failure(folder);
  assert.is(error.details["exitCode"], 3);
  assert.match(String(error.details["output"]), "one");
  assert.match(error.message, "no compiler found");
});

test("a build that leaves no addon is a failure", async () => {
  const error = await failure(packageWith("empty", ""));
  assert.match(error.message, "mooncake_kv.node is not there");
});

test("a package that can't be written is built in the cache of the user", async () => {
  const folder = packageWith(
    "read-only",
    `const { mkdirSync, writeFileSync } = require("node:fs");
     const out = process.argv[process.argv.indexOf("-O") + 1];
     mkdirSync(out + "/RelWithDebInfo");
     writeFileSync(out + "/RelWithDebInfo/mooncake_kv.node", "");`,
  );
  writeFileSync(join(folder, "build"), "not a folder: nothing can be made in it, not even by root");
  const cache = join(root, "cache");
  const environment = { XDG_CACHE_HOME: cache };
  const addon = await buildNativeAddon(folder, { quiet: true, environment });
  assert.ok(addon.startsWith(join(cache, "mooncake-kv")), addon);
  assert.ok(addonCandidates(folder, environment).includes(addon), "the loader must look there");
});

test("without any folder to build in both are named", async () => {
  const folder = packageWith("nowhere", "");
  writeFileSync(join(folder, "build"), "");
  const environment = { XDG_CACHE_HOME: join(folder, "build") };
  const { message } = await failure(folder, environment);
  assert.match(message, `${join(folder, "build")}: `);
  assert.match(message, `${join(folder, "build", "mooncake-kv")}`);
  assert.match(message, "XDG_CACHE_HOME");
});

test("a package without its native sources says so", async () => {
  const folder = packageWith("sourceless", "");
  rmSync(join(folder, "CMakeLists.txt"));
  assert.match((await failure(folder)).message, "no CMakeLists.txt");
});

test.after(() => rmSync(root, { recursive: true }));

test.run();
