import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { runProcess } from "./runner/process.js";

// What a user gets: the tarball, installed into an empty folder. Packages it needs are taken from this checkout, so
// that the test reads no registry.

const root = process.cwd();
const folder = mkdtempSync(join(tmpdir(), "mooncake-kv-package-"));

interface Manifest {
  readonly dependencies: Record<string, string>;
  readonly exports: Record<string, unknown>;
  readonly scripts: Record<string, string>;
}

const manifest = JSON.parse(readFileSync("package.json", "utf8")) as Manifest;

async function run(command: string, args: readonly string[], cwd: string = folder): Promise<string> {
  const script = `cd "$0" && exec "$@"`;
  const { code, output } = await runProcess("bash", ["-c", script, cwd, command, ...args], 180_000);
  assert.is(code, 0, `${command} ${args.join(" ")}\n${output}`);
  return output;
}

test.before(async () => {
  // The package is built by the test run already; building it again here would race with other tests.
  await run("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], root);
  const installed = join(folder, "node_modules", "mooncake-kv");
  mkdirSync(installed, { recursive: true });
  await run("tar", ["-xzf", tarballPath(), "-C", installed, "--strip-components=1"]);
  // As on a platform for which nothing is prebuilt; with the prebuilt addons another test goes on.
  rmSync(join(installed, "prebuilds"), { recursive: true, force: true });
  for (const dependency of [...Object.keys(manifest.dependencies), "fast-check", "pure-rand"])
    cpSync(join(root, "node_modules", dependency), join(folder, "node_modules", dependency), {
      recursive: true,
    });
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
});

test.after(() => rmSync(folder, { recursive: true, force: true }));

test("npm run build starts nothing else, and packing starts clean", () => {
  // npm runs scripts named pre<script> and post<script> by itself.
  for (const script of Object.keys(manifest.scripts))
    assert.not(/^(?:pre|post)(?!pack$|publishOnly$)/.test(script), script);
  assert.match(manifest.scripts["prepack"]!, /^npm run clean:ts && npm run build:ts && /);
});

test("no script runs on installation", () => {
  for (const script of ["preinstall", "install", "postinstall", "prepare"])
    assert.is(manifest.scripts[script], undefined, script);
});

test("every entry point imports, and a function of each works", async () => {
  writeFileSync(
    join(folder, "use.js"),
    `
    import { BlockHasher, parseKey } from "mooncake-kv";
    import { tailKeyBoundaryCodec } from "mooncake-kv/wire";
    import { codecs as old } from "mooncake-kv/wire/vllm-0.27";
    import { loadCodec } from "mooncake-kv/wire/by-name";
    import { openStore } from "mooncake-kv/store";
    import { nativeAvailable, loadNative } from "mooncake-kv/native";
    import { runVectorLines, vectorHandlers } from "mooncake-kv/conformance";
    import { tokenIds } from "mooncake-kv/testing";
    import schema from "mooncake-kv/schemas/key.schema.json" with { type: "json" };
    import manifest from "mooncake-kv/package.json" with { type: "json" };
    const out = {};
    out.hash = new BlockHasher({ blockSize: 4, algorithm: "sha256_cbor" }).hash([1, 2, 3, 4]).toHex();
    out.xxhash = (await BlockHasher.create({ blockSize: 4, algorithm: "xxhash", seed: "0" })).hash([1, 2, 3, 4]).length;
    out.group = parseKey("m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:3@ab").groupId;
    out.valid = tailKeyBoundaryCodec.fromJson({ group_id: 1, num_tokens: 2 }).numTokens;
    out.old = Object.hasOwn(old, "ReqMeta") && !Object.hasOwn(old, "BoundaryPut");
    out.named = (await loadCodec("vllm-0.31", "KeyMetadata")).release;
    out.arbitrary = typeof tokenIds().generate;
    out.native = nativeAvailable();
    out.store = await openStore("embedded:").then(async (store) => { await store.close(); return "open"; }, (error) => error.code);
    try { loadNative(); out.load = "loaded"; } catch (error) { out.load = error.message; }
    const line = '{"id":"x","source":"vllm-0.33.0","op":"build_key_string","input":{"key_prefix":"p","chunk_hash":"h"},"expected":"p@h"}';
    out.vectors = (await runVectorLines("inline", [line], vectorHandlers)).passed;
    out.schema = typeof schema.$schema;
    out.name = manifest.name;
    console.log(JSON.stringify(out));
    `,
  );
  const out = JSON.parse((await run(process.execPath, ["--no-warnings", "use.js"])).trim()) as Record<
    string,
    unknown
  >;
  assert.equal(out["hash"], ["58d0879dff3800f65f8c5fd449d73048c0f7699dd238a03b84b146b151d55111"]);
  assert.is(out["xxhash"], 1);
  assert.is(out["group"], 3);
  assert.is(out["valid"], 2);
  assert.is(out["old"], true);
  assert.is(out["named"], "vllm-0.31");
  assert.is(out["arbitrary"], "function");
  assert.is(out["native"], false);
  assert.is(out["store"], "ERR_NATIVE");
  assert.match(String(out["load"]), /npm install cmake-js node-addon-api, then npx mooncake-kv build/);
  assert.is(out["vectors"], 1);
  assert.is(out["schema"], "string");
  assert.is(out["name"], "mooncake-kv");
});

test("without fast-check the tools for tests say what to install", async () => {
  const away = join(folder, "fast-check-away");
  await run("mv", [join(folder, "node_modules", "fast-check"), away]);
  try {
    writeFileSync(
      join(folder, "lacking.js"),
      'import("mooncake-kv/testing").catch((error) => console.log(error.code, error.message));',
    );
    assert.match(
      await run(process.execPath, ["lacking.js"]),
      /^ERR_CONFIG mooncake-kv\/testing needs the package fast-check .*npm install --save-dev fast-check$/m,
    );
    // Whoever has vectors to run needs it not.
    writeFileSync(
      join(folder, "vectors.js"),
      'import { vectorHandlers } from "mooncake-kv/conformance"; console.log(typeof vectorHandlers);',
    );
    assert.match(await run(process.execPath, ["vectors.js"]), /^object$/m);
  } finally {
    await run("mv", [away, join(folder, "node_modules", "fast-check")]);
  }
});

test("CommonJS code may require the package", async () => {
  writeFileSync(join(folder, "use.cjs"), `console.log(require("mooncake-kv").DEFAULT_RELEASE)`);
  assert.match(await run(process.execPath, ["--no-warnings", "use.cjs"]), /^vllm-0\.33$/m);
});

test("the command runs from the tarball", async () => {
  const bin = join("node_modules", "mooncake-kv", "dist", "node", "cli.js");
  assert.match(
    await run(process.execPath, [bin, "hash", "--block-size", "2", "1", "2"]),
    /^0 2 [0-9a-f]{64}$/m,
  );
});

test("the addon builds in the installed package, and the store opens then", async () => {
  // Links rather than copies: these are the optional packages a user would install next to it.
  await run("ln", ["-s", ...linksTo(["cmake-js", "node-addon-api"]), join(folder, "node_modules")]);
  const bin = join("node_modules", "mooncake-kv", "dist", "node", "cli.js");
  await run(process.execPath, [bin, "build"]);
  const out = JSON.parse((await run(process.execPath, ["--no-warnings", "use.js"])).trim()) as Record<
    string,
    unknown
  >;
  assert.is(out["native"], true);
  assert.is(out["store"], "open");
});

test("the types resolve for every entry point", async () => {
  await run(join("node_modules", ".bin", "publint"), ["--strict"], root);
  // Declarations that call themselves CommonJS beside ES modules are meant so: Node requires the modules as they are.
  await run(
    join("node_modules", ".bin", "attw"),
    [tarballPath(), "--profile", "esm-only", "--ignore-rules", "false-cjs"],
    root,
  );
});

function tarballPath(): string {
  const tarball = readdirSync(folder).find((file) => file.endsWith(".tgz"));
  assert.ok(tarball, "npm pack made no tarball");
  return join(folder, tarball);
}

function linksTo(packages: readonly string[]): string[] {
  return packages.map((name) => join(root, "node_modules", name));
}

test.run();
