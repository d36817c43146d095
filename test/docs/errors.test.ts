import { readFileSync } from "node:fs";
import ts from "typescript";
import { test } from "uvu";
import * as assert from "uvu/assert";

test("the page of errors has every code of the package, and no other", () => {
  const source = ts.createSourceFile(
    "errors.ts",
    readFileSync("src/errors.ts", "utf8"),
    ts.ScriptTarget.Latest,
  );
  const codes: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isTypeAliasDeclaration(node) && node.name.text === "ErrorCode")
      for (const type of (node.type as ts.UnionTypeNode).types)
        codes.push(((type as ts.LiteralTypeNode).literal as ts.StringLiteral).text);
    ts.forEachChild(node, visit);
  };
  visit(source);
  assert.ok(codes.length > 8, codes.join());
  const rows = [...readFileSync("docs/errors.md", "utf8").matchAll(/^\| `(ERR_\w+)` \|/gm)].map(
    (row) => row[1]!,
  );
  assert.equal(rows.sort(), codes.sort());
});

test.run();
