import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { arm64Node } from "./helpers/arm64.js";
import { makePrebuilds } from "./helpers/prebuilds.js";
import { runProcess } from "./runner/process.js";

// What a user gets on a machine without compiler, CMake or Python: the tarball with its prebuilt addons, installed by
// npm, and blocks saved, loaded and hashed. The packages it needs are packed from this checkout: no registry is read.

const root = process.cwd();
const folder = mkdtempSync(join(tmpdir(), "mooncake-kv-package-"));
const bin = join(folder, "bin");
const app = join(folder, "app");
const made = await makePrebuilds();
const arm64 = made ? arm64Node() : undefined;

/** What vLLM makes of the tokens 1 to 4, as the golden vectors have it. */
const HASH = "58d0879dff3800f65f8c5fd449d73048c0f7699dd238a03b84b146b151d55111";

interface Used {
  readonly arch: string;
  readonly hash: string;
  readonly sha256Path: string;
  readonly loaded: number[];
  readonly addons: readonly string[];
}

/** Runs a program with nothing on the PATH but Node and npm. */
async function run(command: readonly string[], cwd: string = app): Promise<string> {
  const script = `cd "$0" && PATH="$1" && shift && exec "$@"`;
  const { code, output } = await runProcess("/bin/sh", ["-c", script, cwd, bin, ...command], 180_000);
  assert.is(code, 0, `${command.join(" ")}\n${output}`);
  return output;
}

test.before(async () => {
  mkdirSync(bin);
  mkdirSync(app);
  symlinkSync(process.execPath, join(bin, "node"));
  symlinkSync(realpathSync(join(dirname(process.execPath), "npm")), join(bin, "npm"));
  const { dependencies } = JSON.parse(readFileSync("package.json", "utf8")) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  const packages = [root, ...Object.keys(dependencies).map((name) => join(root, "node_modules", name))];
  // The package is built by the test run already; its scripts would build it again, beside other tests.
  await run(["npm", "pack", "--ignore-scripts", "--pack-destination", folder, ...packages], root);
  const tarballs = readdirSync(folder).filter((name) => name.endsWith(".tgz"));
  assert.is(tarballs.length, packages.length, tarballs.join());
  writeFileSync(join(app, "package.json"), '{ "type": "module" }');
  const cache = join(folder, "cache");
  await run(["npm", "install", "--offline", "--cache", cache, ...tarballs.map((name) => join(folder, name))]);
  writeFileSync(join(app, "use.js"), USE);
});

test.after(() => rmSync(folder, { recursive: true, force: true }));

/** Saves two objects, loads them, and hashes a block in C++. */
const USE = `
import { readFileSync } from "node:fs";
import { BlockHasher } from "mooncake-kv";
import { loadNative, nativeBlockHashKernel } from "mooncake-kv/native";
import { openStore } from "mooncake-kv/store";

const hasher = new BlockHasher({ blockSize: 4, algorithm: "sha256_cbor", kernel: nativeBlockHashKernel() });
const store = await openStore("embedded:?capacity=16MiB");
(await store.put(["a", "b"], [Uint8Array.of(1, 2, 3), Uint8Array.of(250, 251)])).throwIfFailed();
const { values } = await store.get(["b", "a"]);
await store.close();
const maps = readFileSync("/proc/self/maps", "utf8");
console.log(JSON.stringify({
  arch: process.arch,
  hash: hasher.hash([1, 2, 3, 4]).toHex()[0],
  sha256Path: loadNative().sha256Path,
  loaded: values.map((value) => [...value]).flat(),
  addons: [...new Set(maps.match(/\\/[^\\n]*\\.node/g))],
}));
`;

function check(used: Used, arch: string): void {
  assert.is(used.arch, arch);
  assert.is(used.hash, HASH);
  assert.equal(used.loaded, [250, 251, 1, 2, 3]);
  const addon = join(
    realpathSync(app),
    "node_modules/mooncake-kv/prebuilds",
    `linux-${arch}/mooncake_kv.node`,
  );
  assert.equal(used.addons, [addon]);
}

test("nothing that compiles is on the PATH", async () => {
  assert.equal(readdirSync(bin).sort(), ["node", "npm"]);
  for (const tool of ["cc", "c++", "g++", "clang++", "cmake", "ninja", "make", "python3"]) {
    const { code } = await runProcess("/bin/sh", ["-c", `PATH="${bin}" command -v ${tool}`], 10_000);
    assert.is(code, 127, tool);
  }
});

test("what is pure works by itself", async () => {
  const argv = ["hash", "--block-size", "4", "--algorithm", "sha256_cbor", "1", "2", "3", "4"];
  assert.match(await run(["node", "node_modules/mooncake-kv/dist/src/cli/main.js", ...argv]), HASH);
});

if (made) {
  test("blocks are saved, loaded and hashed by the prebuilt addon", async () => {
    const used = JSON.parse(await run(["node", "--no-warnings", "use.js"])) as Used;
    console.log(used);
    check(used, process.arch);
  });

  test("the command finds it", async () => {
    const output = await run([
      "node",
      "node_modules/mooncake-kv/dist/src/cli/main.js",
      "doctor",
      "--store",
      "embedded:",
    ]);
    assert.match(output, /^ok +native addon .*prebuilds.*version/m);
    assert.match(output, /^embedded: can be used$/m);
  });
}

if (arm64 && process.arch !== "arm64")
  test("the same on arm64, emulated", async () => {
    const used = JSON.parse(await run([...arm64, "--no-warnings", "use.js"])) as Used;
    console.log(used);
    check(used, "arm64");
    assert.is(used.sha256Path, "armv8");
  });

test.run();
