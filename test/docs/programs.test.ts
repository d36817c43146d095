import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { runProcess } from "../runner/process.js";

// The TypeScript programs of these pages run as they stand, each against the built package.

/** Pages, and what each of their programs prints. */
const PAGES: Readonly<Record<string, readonly RegExp[]>> = {
  "conformance.md": [/^\d+ 0 \d+ undefined$/, /^both hold$/],
  "events.md": [/^1 event of engine 0: 2 blocks$/, /^read 1 batch, wrote \d+ bytes$/],
  "errors.md": [/^ERR_KEY .*not a key/],
  "wire-types.md": [
    /^gpt-oss-20b true$/,
    /^LoadSpec of vllm-0\.33 at \$\.vllm_cached_tokens: -1 .* \$\.vllm_cached_tokens$/,
    /^vllm-0\.27 ReqMeta$/,
  ],
};

const FOLDER = join("build", "docs-programs");

for (const [page, expected] of Object.entries(PAGES))
  test(`the programs of ${page} run`, async () => {
    const text = readFileSync(join("docs", page), "utf8");
    const programs = [...text.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map((match) => match[1]!);
    assert.is(programs.length, expected.length);
    mkdirSync(FOLDER, { recursive: true });
    for (const [index, program] of programs.entries()) {
      const file = join(FOLDER, `${page.replace(".md", "")}-${index}.mts`);
      writeFileSync(file, program);
      const { code, output } = await runProcess(process.execPath, ["--import", "tsx", file], 60_000);
      assert.is(code, 0, output);
      assert.match(output.trim(), expected[index]!);
    }
  });

test("files that the pages link to exist", () => {
  const pages = [
    ...readdirSync("docs").map((name) => join("docs", name)),
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
  ];
  for (const page of pages.filter((name) => name.endsWith(".md")))
    for (const [, target] of readFileSync(page, "utf8").matchAll(/\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)/g)) {
      const path = join(page, "..", target!);
      assert.ok(readFileSync(path, "utf8").length > 0, `${page}: ${target}`);
    }
});

test.run();
