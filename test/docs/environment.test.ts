import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";

/** Text files below a folder. */
function sources(folder: string, ending: RegExp): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => ending.test(name))
    .map((name) => join(folder, name));
}

/** A name of an environment variable as it stands in code: a literal, a member of an environment, a default of a child. */
const NAMES: readonly RegExp[] = [
  /"((?:MOONCAKE|MC|VLLM|PYTHON|XDG|GLOG)[A-Z]*(?:_[A-Z0-9]+)*)"/g,
  /\b(?:env|environment)\["([A-Z_0-9]+)"\]/g,
  /\b(?:env|environment)\.([A-Z_0-9]{2,})\b/g,
  /^ {2}(MC_[A-Z_]+): "/gm,
  /\bgetenv\("([A-Z_0-9]+)"\)/g,
  /\benviron(?:\.get\(|\[)["']([A-Z_0-9]+)["']/g,
];

/** Names that are no variables of the environment: a variable of CMake, a tag of a protocol. */
const NO_VARIABLES: readonly string[] = ["MOONCAKE_KV_NODE_ADDON_API", "MCTV"];

/** Every variable that the sources name. The vector runner is left out: its environments are those of recorded engines. */
function named(): Map<string, string> {
  const files = [
    ...sources("src", /\.(?:ts|py)$/).filter((file) => !file.includes(join("conformance", "vectors"))),
    ...sources(join("native", "capi"), /\.(?:cc|h)$/),
  ];
  const found = new Map<string, string>();
  for (const file of files) {
    const text = readFileSync(file, "utf8");
    for (const pattern of NAMES)
      for (const [, name] of text.matchAll(pattern))
        if (!NO_VARIABLES.includes(name!)) found.set(name!, file);
  }
  return found;
}

/** The first column of the tables of the page. */
function documented(): string[] {
  const page = readFileSync("docs/environment.md", "utf8");
  return [...page.matchAll(/^\| `([A-Z_0-9]+)` \|/gm)].map((match) => match[1]!);
}

test("the page has every variable that the sources read, and no other", () => {
  const read = named();
  assert.ok(read.size > 20, "the walk must find them");
  const rows = documented();
  assert.is(new Set(rows).size, rows.length, "each once");
  for (const [name, file] of read) assert.ok(rows.includes(name), `${name} of ${file} is not in the page`);
  for (const name of rows) assert.ok(read.has(name), `${name} of the page is read nowhere`);
});

test("the values that the package sets are those of the page", () => {
  const page = readFileSync("docs/environment.md", "utf8");
  const text = readFileSync("src/store/mooncake/sidecar-process.ts", "utf8");
  const set = [...text.matchAll(/^ {2}(MC_[A-Z_]+): "(\w+)"/gm)];
  assert.ok(set.length > 3);
  for (const [, name, value] of set) assert.match(page, `| \`${name}\` | \`${value}\` |`);
});

test.run();
