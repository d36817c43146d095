import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { findMooncake } from "./helpers/mooncake-wheel.js";
import { runs, seed } from "./helpers/property.js";
import { flakyVerdict } from "./runner/flaky.js";
import { closingCounts, runStage, type Stage, type StageResult, uvuCounts } from "./runner/stage.js";

// The whole test run: `npm test [-- words]`. Words choose the stages and test files whose names contain one of them.
// Every test file is a process of its own, so that a crash or a hang takes only that file with it.

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
process.chdir(root);

const minutes = (count: number) => count * 60_000;
const node = (name: string, script: string, args: readonly string[] = [], timeout = 5): Stage => ({
  name,
  command: process.execPath,
  args: ["--import", "tsx", script, ...args],
  timeoutMs: minutes(timeout),
});
const binary = (name: string, bin: string, args: readonly string[], timeout = 5): Stage => ({
  name,
  command: join("node_modules", ".bin", bin),
  args,
  timeoutMs: minutes(timeout),
});

const sanitizers = process.env["CI"] === "true" || process.argv.includes("--sanitizers");
const nativeTest = (variant: string): Stage => ({
  name: `native core, ${variant}`,
  command: "bash",
  args: ["scripts/native-test.sh", variant],
  timeoutMs: minutes(8),
  counts: closingCounts,
});

/** Stages that later ones need: run one by one, first. */
const preparations: Stage[] = [
  binary("build addon", "cmake-js", ["build", "-B", "RelWithDebInfo", "-p", "2"], 8),
  binary("build package", "tsc", ["-p", "tsconfig.build.json"]),
  node("build package for Node", "scripts/bundle.ts"),
  node("build package, types for CommonJS", "scripts/commonjs-types.ts"),
];

const checks: Stage[] = [
  node("generated code is current", "codegen/main.ts", ["--check"]),
  binary("lint", "biome", ["ci", "--error-on-warnings", "."]),
  binary("types", "tsc", ["-p", "tsconfig.json", "--noEmit"]),
  nativeTest("plain"),
  ...(sanitizers ? [nativeTest("asan"), nativeTest("tsan")] : []),
];

/** Files that wait until the prebuilt addons of both architectures are compiled. */
const crossCompiling = [
  join("test", "native", "prebuilds.test.ts"),
  join("test", "package-without-compiler.test.ts"),
];

const files = readdirSync("test", { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".test.ts"))
  .sort()
  .map((file): Stage => {
    const path = join("test", file);
    return {
      name: path,
      command: process.execPath,
      args: ["--import", "tsx", "--import", "./test/helpers/readable-errors.ts", path],
      timeoutMs: minutes(crossCompiling.includes(path) ? 15 : 8),
      counts: uvuCounts,
    };
  });

/** Two threads of calls against harm, for a while. The real Mooncake is tortured where there is one; in CI there must be. */
const torture = (backend: string): Stage => ({
  name: `torture ${backend}`,
  command: process.execPath,
  args: ["--import", "tsx", "test/torture/main.ts", backend, "--seconds", "20"],
  timeoutMs: minutes(3),
  counts: closingCounts,
});
const tortures = [torture("embedded"), ...(findMooncake() ? [torture("mooncake")] : [])];

/**
 * Files that drive the real Mooncake: several processes each, with leases and timeouts of their own. They run one by one
 * with nothing beside them, and once more where they fail, which the output then says.
 */
const realMooncake = (stage: Stage) =>
  [join("test", "store", "mooncake", "/"), join("test", "store", "every-backend", "/"), "torture"].some(
    (start) => stage.name.startsWith(start),
  ) ||
  [
    join("test", "store", "admin", "contract"),
    join("test", "store", "admin", "real-master"),
    join("test", "store", "cluster", "master-pattern-real"),
    join("test", "cli", "doctor"),
    join("test", "cli", "commands", "conformance"),
  ].some((file) => stage.name === `${file}.test.ts`);

async function runRealMooncake(stages: readonly Stage[]): Promise<StageResult[]> {
  const results: StageResult[] = [];
  for (const stage of stages) {
    let result = await runStage(stage);
    if (result.failed > 0) {
      report(result);
      console.log(`again ${stage.name}`);
      result = await runStage(stage);
      if (result.failed === 0) flaky.push(result);
    }
    report(result);
    results.push(result);
  }
  return results;
}

const flaky: StageResult[] = [];

function report(result: StageResult): void {
  const counts = `${result.passed} passed${result.failed ? `, ${result.failed} failed` : ""}`;
  console.log(
    `${result.failed ? "FAIL" : "ok  "} ${result.name} (${counts}, ${result.seconds.toFixed(1)} s)`,
  );
  if (result.failed) console.log(result.output.trimEnd().replace(/^/gm, "     "));
}

async function runAll(stages: readonly Stage[], lanes: number): Promise<StageResult[]> {
  const results: StageResult[] = [];
  const queue = [...stages];
  const lane = async () => {
    for (let stage = queue.shift(); stage !== undefined; stage = queue.shift()) {
      const result = await runStage(stage);
      report(result);
      results.push(result);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return results;
}

/**
 * Test files that failed while others ran beside them, once more and alone. One that passes then is flaky: it is named, and
 * more than two of them are a failure.
 */
async function againAlone(results: StageResult[]): Promise<StageResult[]> {
  const settled: StageResult[] = [];
  for (const result of results) {
    const stage = files.find(({ name }) => name === result.name);
    if (result.failed === 0 || stage === undefined) {
      settled.push(result);
      continue;
    }
    console.log(`again ${stage.name}`);
    const second = await runStage(stage);
    if (second.failed === 0) flaky.push(second);
    report(second);
    settled.push(second);
  }
  return settled;
}

const words = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const chosen = (stages: readonly Stage[]) =>
  words.length === 0 ? stages : stages.filter((stage) => words.some((word) => stage.name.includes(word)));

console.log(`property seed ${seed}, ${runs} runs a law (FAST_CHECK_SEED and FAST_CHECK_RUNS change them)`);
const results = [
  ...(await runAll(chosen(preparations), 1)),
  ...(await againAlone(
    await runAll(chosen([...checks, ...files.filter((stage) => !realMooncake(stage))]), 2),
  )),
  ...(await runRealMooncake(chosen([...files.filter(realMooncake), ...tortures]))),
];
const verdict = flakyVerdict(flaky);
for (const line of verdict.lines) console.log(line);
const passed = results.reduce((sum, result) => sum + result.passed, 0);
const failed =
  results.reduce((sum, result) => sum + result.failed, 0) + verdict.failed + (results.length === 0 ? 1 : 0);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
