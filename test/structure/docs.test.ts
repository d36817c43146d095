import { readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { undocumentedExports, undocumentedMembers } from "./exports.js";
import { repositoryFiles } from "./files.js";

const sources = repositoryFiles().filter((file) => /^src\/.*\.ts$/.test(file));

test("every export of src has a doc comment", () => {
  assert.ok(sources.length > 30, `${sources.length} files`);
  assert.equal(
    sources.flatMap((file) => undocumentedExports(file, readFileSync(file, "utf8"))),
    [],
  );
});

test("every public member of the pure rooms has a doc comment", () => {
  const pure = sources.filter((file) =>
    /^src\/(?:checks|wire\/codec|hash|key|chunk|layout|request|coordinator|errors|release|python-text)\b/.test(
      file,
    ),
  );
  assert.ok(pure.length > 80, `${pure.length} files`);
  assert.equal(
    pure.flatMap((file) => undocumentedMembers(file, readFileSync(file, "utf8"))),
    [],
  );
});

test("a member without a comment is caught, and a hidden one is none", () => {
  const text = `/** A thing. */
export interface A {
  /** Known. */
  readonly a: number;
  readonly b: string;
  c(): void;
}
/** A class. */
export class B {
  readonly d = 1;
  #e = 2;
  private f = 3;
  /** Known. */
  g(): void {}
  override h(): void {}
}
interface C { readonly i: number }`;
  assert.equal(undocumentedMembers("x.ts", text), ["x.ts:5 A.b", "x.ts:6 A.c", "x.ts:10 B.d"]);
});

const samples: readonly [string, string, readonly string[]][] = [
  ["a function without a comment", "export function f(): void {}", ["x.ts:1 f"]],
  ["a plain comment", "// What it is for.\nexport const a = 1;", ["x.ts:2 a"]],
  ["an empty comment", "/** */\nexport class A {}", ["x.ts:2 A"]],
  ["an errors-only comment", "/** @throws Error now and then. */\nexport interface A {}", []],
  ["two constants", "export const a = 1,\n  b = 2;", ["x.ts:1 a", "x.ts:1 b"]],
  ["a default export", "export default function () {}", ["x.ts:1 default"]],
  ["a documented function", "/** Does nothing at all. */\nexport async function f(): Promise<void> {}", []],
  ["overloads", "/** Does nothing at all. */\nexport function f(): void;\nexport function f(): void {}", []],
  ["what is not exported", "const a = 1;\nfunction f(): void {}", []],
  ["re-exports", 'export { a } from "./a.js";\nexport * from "./b.js";', []],
];
for (const [name, text, expected] of samples)
  test(`${expected.length ? "caught" : "allowed"}: ${name}`, () => {
    assert.equal(undocumentedExports("x.ts", text), expected);
  });

test.run();
