import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { repositoryFiles } from "../structure/files.js";

const FOLDER = join("build", "doc-examples");

/** The TypeScript of every `@example` in the sources, by a name of its own. */
function examples(): Map<string, string> {
  const found = new Map<string, string>();
  for (const file of repositoryFiles().filter((name) => /^src\/.*\.ts$/.test(name))) {
    const text = readFileSync(file, "utf8");
    for (const [index, match] of [...text.matchAll(/ \* @example\n \* ```ts\n([\s\S]*?) \* ```/g)].entries())
      found.set(`${file.replace(/\W+/g, "-")}-${index}.ts`, match[1]!.replace(/^ \* ?/gm, ""));
  }
  return found;
}

test("the examples of the API reference compile against the built package", () => {
  const all = examples();
  assert.ok(all.size >= 12, `${all.size} examples`);
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  for (const [name, code] of all) writeFileSync(join(FOLDER, name), code);
  const program = ts.createProgram(
    [...all.keys()].map((name) => join(FOLDER, name)),
    {
      noEmit: true,
      strict: true,
      exactOptionalPropertyTypes: true,
      module: ts.ModuleKind.NodeNext,
      target: ts.ScriptTarget.ES2022,
      lib: ["lib.es2023.d.ts", "lib.esnext.disposable.d.ts"],
      types: ["node"],
      skipLibCheck: true,
    },
  );
  const problems = ts
    .getPreEmitDiagnostics(program)
    .map(
      ({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`,
    );
  assert.equal(problems, []);
});

test.run();
