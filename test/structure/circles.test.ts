import { readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { importCircles } from "./circles.js";
import { repositoryFiles } from "./files.js";

test("no file takes part in a circle of imports", () => {
  const files = repositoryFiles().filter((file) =>
    /^(src|codegen|generated\/typescript)\/.*\.ts$/.test(file),
  );
  assert.ok(files.length > 400, `${files.length} files`);
  assert.equal(importCircles(new Map(files.map((file) => [file, readFileSync(file, "utf8")]))), []);
});

const circle = (...files: [string, string][]) => importCircles(new Map(files));

test("a circle of two, of types and of three is found, and so is a file that imports itself", () => {
  assert.equal(circle(["a.ts", 'import "./b.js";'], ["b.ts", 'export * from "./a.js";']), [["a.ts", "b.ts"]]);
  assert.equal(
    circle(["x/a.ts", 'import type { B } from "../b.js";'], ["b.ts", 'type A = import("./x/a.js").A;']),
    [["b.ts", "x/a.ts"]],
  );
  assert.equal(
    circle(["a.ts", 'import "./b.js";'], ["b.ts", 'import("./c.js");'], ["c.ts", 'import "./a.js";']),
    [["a.ts", "b.ts", "c.ts"]],
  );
  assert.equal(circle(["a.ts", 'import "./a.js";']), [["a.ts"]]);
});

test("two ways to one file are no circle", () => {
  assert.equal(
    circle(["a.ts", 'import "./b.js"; import "./c.js";'], ["b.ts", 'import "./c.js";'], ["c.ts", ""]),
    [],
  );
});

test.run();
