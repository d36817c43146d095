import { readFileSync } from "node:fs";
import ts from "typescript";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { CODE, STORE_CODES, storeCode } from "../../../src/store/index.js";
import { repositoryFiles } from "../../structure/files.js";

test("the table has every code of Mooncake once, with a name of its own", () => {
  const names = new Set([...STORE_CODES.values()].map(({ name }) => name));
  assert.is(STORE_CODES.size, 72);
  assert.is(names.size, STORE_CODES.size);
  for (const [number, { code, name, meaning }] of STORE_CODES) {
    assert.is(code, number);
    assert.ok(code <= 0);
    assert.match(name, /^[A-Z0-9_]+$/);
    assert.ok(meaning.length > 3);
  }
});

test("names and advice of the codes that callers meet", () => {
  const expected: readonly (readonly [number, string, boolean])[] = [
    [0, "OK", false],
    [-1, "INTERNAL_ERROR", false],
    [-200, "NO_AVAILABLE_HANDLE", true],
    [-600, "INVALID_PARAMS", false],
    [-601, "ILLEGAL_CLIENT", false],
    [-703, "REPLICA_IS_NOT_READY", true],
    [-704, "OBJECT_NOT_FOUND", false],
    [-706, "OBJECT_HAS_LEASE", true],
    [-707, "LEASE_EXPIRED", true],
    [-714, "OBJECT_REPLICA_BUSY", true],
    [-800, "TRANSFER_FAIL", true],
    [-900, "RPC_FAIL", true],
    [-901, "RPC_TIMEOUT", true],
  ];
  for (const [code, name, retry] of expected) {
    assert.is(storeCode(code).name, name);
    assert.is(storeCode(code).retry, retry, name);
  }
});

test("a number that Mooncake does not define is said to be unknown", () => {
  assert.is(storeCode(-12345).name, "UNKNOWN");
  assert.is(storeCode(-12345).code, -12345);
});

test("a code is named once: the C++ core has the same names and numbers", () => {
  const header = readFileSync("native/core/codes.h", "utf8");
  const native = [...header.matchAll(/constexpr std::int32_t (\w+) = (-?\d+);/g)];
  assert.ok(native.length >= 12);
  for (const [, name, number] of native)
    assert.is((CODE as Readonly<Record<string, number>>)[name!.toUpperCase()], Number(number), name);
  for (const [name, code] of Object.entries(CODE)) assert.is(storeCode(code).name, name);
});

test("no source file writes a code as a number", () => {
  // -1 is many other things, too.
  const codes = new Set<number>(Object.values(CODE).filter((code) => code < -1));
  const places: string[] = [];
  for (const file of repositoryFiles().filter((name) => /^src\/.*\.ts$/.test(name))) {
    if (file === "src/store/shared/codes.ts" || file.startsWith("src/testing/")) continue;
    const source = ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true);
    const visit = (node: ts.Node): void => {
      if (
        ts.isPrefixUnaryExpression(node) &&
        node.operator === ts.SyntaxKind.MinusToken &&
        (ts.isNumericLiteral(node.operand) || ts.isBigIntLiteral(node.operand)) &&
        codes.has(-Number(node.operand.text.replace(/n$/, "")))
      )
        places.push(`${file}: ${node.getText()}`);
      ts.forEachChild(node, visit);
    };
    visit(source);
  }
  assert.equal(places, []);
});

test.run();
