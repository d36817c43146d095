import { readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { repositoryFiles } from "./files.js";

// What no file of the repository may hold. The patterns are put together from pieces, so that they don't find themselves.

const files = repositoryFiles();
/** Golden vectors are recordings; texts of examples are other people's words. */
const own = files.filter((file) => !/^(test\/vectors|examples\/texts)\//.test(file));
const read = (file: string) => readFileSync(file, "utf8");

const FORBIDDEN: readonly [string, RegExp][] = [
  ["a path of one machine", new RegExp(`(?<![\\w.~-])/(?:${["work", "home", "Users"].join("|")})/[\\w.-]`)],
  [
    "the host of a package registry",
    new RegExp(
      `(?:registry\\.[a-z0-9-]+\\.[a-z]+|https?://[^\\s"'\`)]*(?:${["arti" + "factory", "nex" + "us", "verd" + "accio", "npm" + "mirror"].join("|")}))`,
    ),
  ],
  ["an unfinished piece", new RegExp(`\\b(?:${["TO" + "DO", "FIX" + "ME"].join("|")})\\b`)],
];

/** The places of a text where one of the patterns matches. */
function findings(file: string, text: string): string[] {
  return text
    .split("\n")
    .flatMap((line, index) =>
      FORBIDDEN.filter(([, pattern]) => pattern.test(line)).map(
        ([what, pattern]) => `${file}:${index + 1}: ${what}: ${pattern.exec(line)![0]}`,
      ),
    );
}

test("no machine paths, no registry hosts, nothing unfinished", () => {
  assert.ok(own.length > 50, `${own.length} files`);
  assert.equal(
    own.flatMap((file) => findings(file, read(file))),
    [],
  );
});

const caught = [
  `see /${"work"}/main/README.md`,
  `"/${"home"}/user/x"`,
  `registry${"."}npmjs.org`,
  `https://packages.example.org/${"arti" + "factory"}/api`,
  `// ${"TO" + "DO"}: later`,
];
for (const text of caught)
  test(`caught: ${text.slice(0, 12)}`, () => {
    assert.is(findings("x", text).length, 1);
  });

for (const text of [
  "framework/main",
  "~/home/x",
  "a package registry",
  "https://example.org/work/",
  "todo lists",
])
  test(`allowed: ${text}`, () => {
    assert.equal(findings("x", text), []);
  });

test("the lock file says which packages, not from where", () => {
  const lock = JSON.parse(read("package-lock.json")) as {
    readonly packages: Readonly<
      Record<string, { readonly resolved?: string; readonly integrity?: string; readonly link?: boolean }>
    >;
  };
  const packages = Object.entries(lock.packages).filter(([name]) => name !== "");
  assert.ok(packages.length > 20);
  assert.equal(
    packages.filter(([, { resolved }]) => resolved !== undefined).map(([name]) => name),
    [],
  );
  assert.equal(
    packages.filter(([, { integrity }]) => !integrity).map(([name]) => name),
    [],
    "each package is pinned by its digest",
  );
});

test("no source file has more than 450 lines", () => {
  const long = own
    .filter((file) => /^(src|codegen|native|test|bench|scripts|examples)\/.*\.(ts|cc|h|txt|sh)$/.test(file))
    .map((file) => [file, read(file).split("\n").length - 1] as const)
    .filter(([, lines]) => lines > 450);
  assert.equal(long, []);
});

test("every test file runs its tests", () => {
  const silent = own
    .filter((file) => file.endsWith(".test.ts"))
    .filter((file) => !/^(test|\w+)\.run\(\);?$/m.test(read(file)));
  assert.equal(silent, []);
});

test("no test is skipped or singled out", () => {
  const pattern = new RegExp(`\\b(?:test|suite)\\.(?:${["sk" + "ip", "on" + "ly"].join("|")})\\b`);
  assert.equal(
    own.filter((file) => file.endsWith(".ts") && pattern.test(read(file))),
    [],
  );
  assert.ok(pattern.test(`test.${"sk" + "ip"}("x", () => {})`));
});

test.run();
