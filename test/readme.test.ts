import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { runProcess } from "./runner/process.js";

const readme = readFileSync("README.md", "utf8");

/** Code blocks of one language, in order. */
function blocks(language: string): string[] {
  return [...readme.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g"))].map(
    (match) => match[1]!,
  );
}

test("the SDK example of the README runs against the built package", async () => {
  const [example] = blocks("ts");
  assert.ok(example, "the README has no TypeScript block");
  mkdirSync("build", { recursive: true });
  writeFileSync("build/readme-example.mts", example);
  const { code, output } = await runProcess(
    process.execPath,
    ["--import", "tsx", "build/readme-example.mts"],
    30_000,
  );
  assert.is(code, 0, output);
  assert.match(
    output,
    /^gpt-oss-20b@store_tp:4@store_pp:1@store_format:tp_shared_lbhnc@tp_rank:0@.*@group:0@[0-9a-f]{64}$/m,
  );
  const printed = output.trim().slice(-64, -60);
  assert.ok(example.includes(`@group:0@${printed}`), `the comment shows another hash than ${printed}...`);
});

test("the command line example of the README prints what the README says", async () => {
  const session = blocks("sh").find((block) => block.startsWith("$ "));
  assert.ok(session, "the README has no command session");
  const [prompt, ...expected] = session.trimEnd().split("\n");
  const args = prompt!.replace("$ npx mooncake-kv ", "").split(" ");
  const { code, output } = await runProcess(process.execPath, ["dist/node/cli.js", ...args], 30_000);
  assert.is(code, 0, output);
  assert.is(output.trimEnd(), expected.join("\n"));
});

test("the README's two commands exist", () => {
  const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };
  assert.ok(scripts["start"] && scripts["test"]);
  assert.match(readme, /npm ci && npm start/);
  assert.match(readme, /npm ci && npm test/);
});

test("files that the README links to exist", () => {
  for (const [, path] of readme.matchAll(/\]\(([^)#:]+)\)/g))
    assert.ok(readFileSync(path!, "utf8").length > 0, path);
});

test.run();
