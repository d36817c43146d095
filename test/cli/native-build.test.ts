import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { buildNativeAddon, builtAddon } from "../../src/cli/native-build.js";
import { isMooncakeKvError, type MooncakeKvError } from "../../src/errors.js";

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

async function failure(folder: string): Promise<MooncakeKvError> {
  try {
    await buildNativeAddon(folder, { quiet: true });
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
  await buildNativeAddon(folder, { quiet: true });
  assert.ok(existsSync(builtAddon(folder)));
  const { default: argv } = await import(join(folder, "arguments.json"), { with: { type: "json" } });
  assert.equal(argv, ["build", "-B", "RelWithDebInfo", "-d", folder]);
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

test("missing tools are named, with the command that installs them", async () => {
  const folder = join(root, "bare");
  mkdirSync(folder);
  const error = await failure(folder);
  // cmake-js may come from the project that uses the package: here, this repository.
  assert.equal(error.details["missing"], ["node-addon-api"]);
  assert.match(error.message, "npm install node-addon-api");
});

test("a package without its native sources says so", async () => {
  const folder = packageWith("sourceless", "");
  rmSync(join(folder, "CMakeLists.txt"));
  assert.match((await failure(folder)).message, "no CMakeLists.txt");
});

test.after(() => rmSync(root, { recursive: true }));

test.run();
