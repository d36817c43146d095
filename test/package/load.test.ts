import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import ts from "typescript";
import { test } from "uvu";
import * as assert from "uvu/assert";

// What each entry of the built package loads before anything is called. Times are a benchmark (`bench/load.ts`); here
// stands what they come from: how many files, and which.

interface Entry {
  readonly node: string;
  readonly default: string;
}

const { exports } = JSON.parse(readFileSync("package.json", "utf8")) as {
  readonly exports: Readonly<Record<string, Entry | string>>;
};

/** All files of the package that loading `file` loads, and the packages and Node modules that these import. */
function loaded(file: string): { readonly files: string[]; readonly packages: string[] } {
  const files = new Set<string>();
  const packages = new Set<string>();
  const visit = (path: string): void => {
    if (files.has(path)) return;
    files.add(path);
    const source = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest);
    for (const statement of source.statements) {
      const isImport = ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement);
      if (!isImport || statement.moduleSpecifier === undefined) continue;
      const { text } = statement.moduleSpecifier as ts.StringLiteral;
      if (text.startsWith(".")) visit(join(dirname(path), text));
      else packages.add(text);
    }
  };
  visit(file);
  return { files: [...files], packages: [...packages].sort() };
}

const entry = (name: string): Entry => exports[name] as Entry;

test("the core is three files for Node, and loads no validator, addon or optional package", () => {
  const { files, packages } = loaded(entry(".").node);
  assert.ok(files.length <= 3, files.join(", "));
  assert.equal(packages, []);
});

test("for a bundler the core reaches no generated code, and nothing of Node", () => {
  const { files, packages } = loaded(entry(".").default);
  assert.ok(files.length > 50);
  assert.equal(
    files.filter((file) => file.includes("generated/") || file.includes("/wire/")),
    [],
  );
  assert.equal(packages, ["#platform"]);
});

test("a release of the wire types loads that release alone", () => {
  for (const [name, { default: file }] of Object.entries(exports).filter(
    (each): each is [string, Entry] => typeof each[1] === "object" && each[0].startsWith("./wire/vllm-"),
  )) {
    const release = name.slice("./wire/".length);
    const others = loaded(file).files.filter(
      (path) => path.includes("/generated/") && !path.includes(`/${release}/`),
    );
    assert.equal(others, [], name);
  }
});

test("codecs by name load no release before one is asked for", () => {
  const { files } = loaded(entry("./wire/by-name").default);
  assert.equal(
    files.filter((file) => /\/vllm-/.test(file)),
    [],
  );
});

test("no entry but that of the test tools needs an optional package at once", () => {
  const { peerDependencies } = JSON.parse(readFileSync("package.json", "utf8")) as {
    readonly peerDependencies: Readonly<Record<string, string>>;
  };
  for (const [name, target] of Object.entries(exports)) {
    if (typeof target === "string") continue;
    for (const file of [target.node, target.default])
      assert.equal(
        loaded(file).packages.filter((specifier) => specifier in peerDependencies),
        [],
        name,
      );
  }
});

test.run();
