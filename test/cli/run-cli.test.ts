import { test } from "uvu";
import * as assert from "uvu/assert";
import { COMMANDS } from "../../src/cli/registry.js";
import { reportedError } from "../../src/cli/report-error.js";
import { UsageError } from "../../src/cli/usage-error.js";
import { type ErrorCode, MooncakeKvError } from "../../src/errors.js";
import { run, runJson } from "./helpers/run.js";

const commands: readonly (readonly string[])[] = COMMANDS.flatMap((entry) =>
  "commands" in entry ? entry.commands.map((inner) => [entry.name, inner.name]) : [[entry.name]],
);

test("the help names every command with its summary", async () => {
  for (const argv of [["--help"], ["-h"], ["help"]]) {
    const { exitCode, stdout, stderr } = await run(argv, { terminal: true });
    assert.equal([exitCode, stderr], [0, ""]);
    for (const { name, summary } of COMMANDS)
      assert.match(stdout, new RegExp(`^ {2}${name} +${summary.slice(0, 20)}`, "m"));
  }
});

test("each command has a help with its options, in both spellings", async () => {
  for (const words of commands) {
    const behind = await run([...words, "--help"]);
    assert.is(behind.exitCode, 0, words.join(" "));
    assert.match(behind.stdout, `Usage: mooncake-kv ${words.join(" ")} [options]`);
    assert.equal(await run(["help", ...words]), behind);
  }
  const group = await run(["key", "--help"]);
  assert.is(group.exitCode, 0);
  assert.match(group.stdout, "store keys of block hashes");
});

test("the version is that of package.json", async () => {
  const { exitCode, stdout } = await run(["--version"]);
  const { default: manifest } = await import("../../package.json", { with: { type: "json" } });
  assert.equal([exitCode, stdout], [0, `${manifest.version}\n`]);
});

test("without a command the help goes to stderr, with status 2", async () => {
  for (const argv of [[], ["key"]]) {
    const { exitCode, stdout, stderr } = await run(argv);
    assert.equal([exitCode, stdout], [2, ""]);
    assert.match(stderr, /^Usage: mooncake-kv/);
  }
});

const WRONG: readonly (readonly [readonly string[], RegExp])[] = [
  [["hsah"], /unknown command "hsah"; did you mean hash\?/],
  [["hsah", "--help"], /did you mean hash\?/],
  [["help", "chunk"], /did you mean chunks\?/],
  [["key", "prase"], /unknown command "prase"; did you mean parse\?/],
  [["frobnicate"], /unknown command "frobnicate"; mooncake-kv --help lists/],
  [["hash", "--sede", "0"], /unknown option '--sede'.*--seed/],
  [["hash", "1", "--seed"], /--seed.*argument missing/],
  [["--json", "hash", "1"], /unknown option '--json'/],
  [["validate"], /required/],
  [["layout", "a", "b"], /too many arguments/],
];

for (const [argv, message] of WRONG)
  test(`refuses ${argv.join(" ")}`, async () => {
    const { exitCode, stdout, stderr } = await run(argv);
    if (!argv.includes("--json")) assert.is(stdout, "");
    assert.is(exitCode, 2);
    assert.match(argv.includes("--json") ? stdout : stderr, message);
    assert.is((stdout + stderr).split("\n").length, 2, "one line");
  });

test("with --json an error is an object on stdout", async () => {
  const { exitCode, value } = await runJson(["hash", "1", "-5", "--block-size", "1"]);
  assert.is(exitCode, 2);
  assert.equal(value, {
    error: {
      code: "ERR_HASH",
      message: "token 1 is -5; token ids are whole numbers of 0 to 2^32 - 1",
      details: { index: 1, token: -5 },
    },
  });
  const usage = await runJson(["hash", "--nonsense"]);
  assert.equal([usage.exitCode, (usage.value["error"] as { code: string }).code], [2, "ERR_USAGE"]);
  const { stderr } = await run(["hash", "x", "--json"]);
  assert.is(stderr, "");
});

test("a stack is shown only where MOONCAKE_KV_DEBUG asks for it", async () => {
  assert.not.match((await run(["hash", "x"])).stderr, / at .*\.ts/);
  assert.match((await run(["hash", "x"], { env: { MOONCAKE_KV_DEBUG: "1" } })).stderr, / at .*\.ts/);
});

test("the status tells bad input from a failed operation", () => {
  const status = (code: ErrorCode) => reportedError(new MooncakeKvError(code, "x")).exitCode;
  for (const code of ["ERR_SCHEMA", "ERR_HASH", "ERR_KEY", "ERR_CHUNK", "ERR_LAYOUT", "ERR_CONFIG"] as const)
    assert.is(status(code), 2, code);
  for (const code of ["ERR_STORE", "ERR_NATIVE"] as const) assert.is(status(code), 1, code);
  assert.equal(reportedError(new UsageError("x", { a: 1 })), {
    code: "ERR_USAGE",
    message: "x",
    details: { a: 1 },
    exitCode: 2,
  });
  assert.equal(reportedError(new RangeError("x")), {
    code: "ERR_UNEXPECTED",
    message: "x",
    details: {},
    exitCode: 1,
  });
  assert.is(reportedError("thrown").message, "thrown");
});

test.run();
