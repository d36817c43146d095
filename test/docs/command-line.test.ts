import { readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { COMMANDS } from "../../src/cli/registry.js";
import { run } from "../cli/helpers/run.js";

const PAGE = readFileSync("docs/command-line.md", "utf8");

/** A command of the page, what it prints, and what it ends with. */
interface Example {
  readonly command: string;
  readonly output: string;
  readonly exitCode: number;
}

function examples(): Example[] {
  const found: Example[] = [];
  for (const [, block] of PAGE.matchAll(/^```console\n([\s\S]*?)^```/gm))
    for (const part of block!.split(/^\$ /m).slice(1)) {
      const [command = "", ...lines] = part.trimEnd().split("\n");
      const status = /^# exit (\d+)$/.exec(lines.at(-1) ?? "");
      const output = (status ? lines.slice(0, -1) : lines).join("\n");
      found.push({ command, output, exitCode: Number(status?.[1] ?? 0) });
    }
  return found;
}

/** The words of a command as a shell takes them: single quotes are all that the page needs. */
function words(command: string): string[] {
  return Array.from(command.matchAll(/'([^']*)'|(\S+)/g), ([, quoted, plain]) => quoted ?? plain!);
}

/** Runs a pipeline of commands of the page. */
async function pipeline(line: string) {
  let stdin = "";
  let last = { exitCode: 0, stdout: "", stderr: "" };
  for (const command of line.split(" | ")) {
    const [program, ...argv] = words(command);
    if (program === "echo") last = { exitCode: 0, stdout: `${argv.join(" ")}\n`, stderr: "" };
    else {
      assert.is(program, "mooncake-kv");
      last = await run(argv, { stdin, env: { PATH: "/nonexistent" } });
    }
    stdin = last.stdout;
  }
  return last;
}

/** Text in which `...` stands for anything. */
function matches(text: string, sample: string): boolean {
  const pattern = sample
    .split("...")
    .map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"))
    .join("[^]*");
  return new RegExp(`^${pattern}$`).test(text);
}

for (const { command, output, exitCode } of examples())
  test(command, async () => {
    const result = await pipeline(command);
    assert.is(result.exitCode, exitCode, result.stderr);
    const text = (exitCode === 0 ? result.stdout : result.stdout + result.stderr).trimEnd();
    assert.ok(matches(text, output), `printed\n${text}\ninstead of\n${output}`);
    if (command.includes("--json")) JSON.parse(result.stdout);
  });

test("every command has a section", () => {
  const names = COMMANDS.flatMap((entry) =>
    "commands" in entry ? entry.commands.map((inner) => `${entry.name} ${inner.name}`) : [entry.name],
  );
  for (const name of names) assert.match(PAGE, new RegExp(`^## ${name}$`, "m"));
  assert.ok(examples().length > 15);
});

test.run();
