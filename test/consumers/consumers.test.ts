import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { runProcess } from "../runner/process.js";

// Projects of several kinds that installed the tarball: they compile under old and new TypeScript, and run.

const root = process.cwd();
const folder = mkdtempSync(join(tmpdir(), "mooncake-kv-consumers-"));
/** Compilers and runtimes; kept between runs, since they are large. */
const tools = join(root, "build", "consumers");

const EXPECTED = [
  "m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:3@58d0879dff3800f65f8c5fd449d73048c0f7699dd238a03b84b146b151d55111",
  3,
  "m",
  "vllm-0.31",
  false,
  1,
  "function",
  "function",
  "function",
  0,
];

async function run(
  command: string,
  args: readonly string[],
  cwd: string,
  minutes: number = 3,
): Promise<string> {
  const { code, output } = await runProcess(
    "bash",
    ["-c", 'cd "$0" && exec "$@"', cwd, command, ...args],
    minutes * 60_000,
  );
  assert.is(code, 0, `${command} ${args.join(" ")}\n${output}`);
  return output;
}

test.before(async () => {
  const wanted = readFileSync("test/consumers/tools/package-lock.json", "utf8");
  mkdirSync(tools, { recursive: true });
  const stamp = join(tools, "installed.json");
  const installed = readdirSync(tools).includes("installed.json") ? readFileSync(stamp, "utf8") : "";
  if (installed !== wanted) {
    for (const file of ["package.json", "package-lock.json"])
      cpSync(join("test/consumers/tools", file), join(tools, file));
    cpSync(".npmrc", join(tools, ".npmrc"));
    // What the packages' own scripts would fetch is in them already.
    await run("npm", ["ci", "--ignore-scripts"], tools, 6);
    writeFileSync(stamp, wanted);
  }
  await run("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], root);
  const tarball = readdirSync(folder).find((file) => file.endsWith(".tgz"))!;
  const modules = join(folder, "node_modules");
  mkdirSync(join(modules, "mooncake-kv"), { recursive: true });
  await run("tar", ["-xzf", tarball, "-C", join(modules, "mooncake-kv"), "--strip-components=1"], folder);
  const { dependencies } = JSON.parse(readFileSync("package.json", "utf8")) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  for (const name of Object.keys(dependencies))
    cpSync(join(root, "node_modules", name), join(modules, name), { recursive: true });
  for (const name of ["@types/node", "undici-types"])
    cpSync(join(tools, "node_modules", name), join(modules, name), { recursive: true });
});

test.after(() => rmSync(folder, { recursive: true, force: true }));

/** Where the compilers are, by what the test calls them. */
const COMPILERS: Readonly<Record<string, string>> = {
  "TypeScript 5.4": join(tools, "node_modules/typescript-5.4/bin/tsc"),
  "TypeScript 5.9": join(tools, "node_modules/typescript-5.9/bin/tsc"),
  "TypeScript 6": join(root, "node_modules/typescript/bin/tsc"),
  "TypeScript 7": join(tools, "node_modules/typescript-7/bin/tsc"),
};

/** Kinds of projects: the `type` of their package.json, what their tsconfig has besides strictness, and how they run. */
const PROJECTS: Readonly<
  Record<
    string,
    { readonly type: string; readonly compiler: Record<string, unknown>; readonly runs: boolean }
  >
> = {
  "nodenext, ES modules": { type: "module", compiler: { module: "nodenext" }, runs: true },
  "node16, CommonJS": { type: "commonjs", compiler: { module: "node16" }, runs: true },
  // Bundlers resolve at run time what this leaves as it stands.
  bundler: {
    type: "module",
    compiler: { module: "esnext", moduleResolution: "bundler" },
    runs: false,
  },
};

for (const [project, { type, compiler, runs }] of Object.entries(PROJECTS))
  for (const [name, tsc] of Object.entries(COMPILERS))
    test(`${project} compiles with ${name}${runs ? " and runs" : ""}`, async () => {
      const place = join(folder, `${project}-${name}`.replace(/\W+/g, "-"));
      mkdirSync(place);
      cpSync("test/consumers/use.ts", join(place, "use.ts"));
      writeFileSync(join(place, "package.json"), JSON.stringify({ type }));
      const compilerOptions = {
        ...compiler,
        target: "es2022",
        lib: ["es2023", "esnext.disposable"],
        types: ["node"],
        strict: true,
        exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true,
        rootDir: ".",
        outDir: "out",
      };
      writeFileSync(join(place, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["use.ts"] }));
      await run(process.execPath, [tsc, "-p", "."], place);
      if (!runs) return;
      const output = await run(process.execPath, ["--no-warnings", "out/use.js"], place);
      assert.equal(JSON.parse(output), EXPECTED);
    });

/** Other runtimes, and how each runs a program with the packages beside it. */
const RUNTIMES: Readonly<Record<string, readonly [string, ...string[]]>> = {
  Bun: [join(tools, "node_modules/@oven/bun-linux-x64/bin/bun"), "run", "use.ts"],
  Deno: [join(tools, "node_modules/@deno/linux-x64-glibc/deno"), "run", "-A", "--no-lock", "use.ts"],
};

for (const [name, [command, ...args]] of Object.entries(RUNTIMES))
  test(`${name} runs it`, async () => {
    const place = join(folder, name);
    mkdirSync(place);
    cpSync("test/consumers/use.ts", join(place, "use.ts"));
    writeFileSync(join(place, "package.json"), '{ "type": "module" }');
    const output = await run(command, args, place);
    assert.equal(JSON.parse(output.trim().split("\n").at(-1)!), EXPECTED);
  });

test.run();
