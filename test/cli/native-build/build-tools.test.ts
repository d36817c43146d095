import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { locateTools } from "../../../src/cli/native-build/build-tools.js";
import { isMooncakeKvError, type MooncakeKvError } from "../../../src/errors.js";

const root = realpathSync(mkdtempSync(join(tmpdir(), "mooncake-kv-")));
const TOOLS = ["cmake-js", "node-addon-api"];

/** A folder with some packages in its node_modules. */
function folder(name: string, packages: readonly string[] = []): string {
  const home = join(root, name);
  mkdirSync(home, { recursive: true });
  for (const one of packages) {
    const at = join(home, "node_modules", one);
    mkdirSync(at, { recursive: true });
    writeFileSync(join(at, "package.json"), JSON.stringify({ name: one, bin: { [one]: "./run.cjs" } }));
  }
  return home;
}

function failure(call: () => unknown): MooncakeKvError {
  try {
    call();
  } catch (error) {
    if (isMooncakeKvError(error, "ERR_NATIVE")) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

test("missing tools are named, with the command that installs them", () => {
  const bare = folder("bare");
  const { message, details } = failure(() => locateTools(bare, bare));
  assert.equal(details["missing"], TOOLS);
  assert.match(message, "npm install cmake-js node-addon-api (with -g");
  const half = folder("half", ["cmake-js"]);
  assert.equal(failure(() => locateTools(half, bare)).details["missing"], ["node-addon-api"]);
});

test("beside the package, as after npm install -g", () => {
  const lib = folder("global", ["mooncake-kv", ...TOOLS]);
  const found = locateTools(join(lib, "node_modules", "mooncake-kv"), folder("elsewhere"));
  assert.equal(found, {
    cmakeJs: join(lib, "node_modules", "cmake-js", "run.cjs"),
    headers: join(lib, "node_modules", "node-addon-api"),
  });
});

test("in the project one works in, each tool for itself", () => {
  const lib = folder("global-half", ["mooncake-kv", "cmake-js"]);
  const project = folder("project", TOOLS);
  const found = locateTools(join(lib, "node_modules", "mooncake-kv"), project);
  assert.is(found.cmakeJs, join(lib, "node_modules", "cmake-js", "run.cjs"));
  assert.is(found.headers, join(project, "node_modules", "node-addon-api"));
});

test("a package inside an archive can't be compiled", () => {
  const project = folder("archive", TOOLS);
  const inside = folder(join("cache", "mooncake-kv.zip", "node_modules", "mooncake-kv"));
  assert.match(failure(() => locateTools(inside, project)).message, "run yarn unplug mooncake-kv");
});

test.after(() => rmSync(root, { recursive: true }));

test.run();
