import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { check, generate, ROOT, write } from "../../codegen/generate.js";
import { SchemaProblem } from "../../codegen/schema.js";

const test = suite<{ folder: string }>("generate");

test.before.each((context) => {
  context.folder = mkdtempSync(join(tmpdir(), "mooncake-kv-generate-"));
});

test.after.each(({ folder }) => {
  rmSync(folder, { recursive: true, force: true });
});

test("the committed output is what the generator makes", async () => {
  assert.equal(await check(), [], "run `npm run generate`");
});

test("a hand edit, a lost file and a foreign file are named", async ({ folder }) => {
  cpSync(join(ROOT, "generated"), folder, { recursive: true });
  assert.equal(await check(ROOT, folder), []);
  appendFileSync(join(folder, "typescript/vllm-0.31/key.ts"), "\n");
  rmSync(join(folder, "typescript/index.ts"));
  writeFileSync(join(folder, "typescript/vllm-0.33/notes.md"), "mine");
  assert.equal(await check(ROOT, folder), [
    { path: "typescript/index.ts", kind: "missing" },
    { path: "typescript/vllm-0.31/key.ts", kind: "differs" },
    { path: "typescript/vllm-0.33/notes.md", kind: "extra" },
  ]);
});

test("writing mends what differs, and the second time there is nothing to do", async ({ folder }) => {
  cpSync(join(ROOT, "generated"), folder, { recursive: true });
  appendFileSync(join(folder, "typescript/vllm-0.31/key.ts"), "\n");
  writeFileSync(join(folder, "typescript/vllm-0.33/notes.md"), "mine");
  assert.is((await write(ROOT, folder)).length, 2);
  assert.equal(await write(ROOT, folder), []);
  assert.equal(await check(ROOT, folder), []);
});

test("an empty folder is filled completely", async ({ folder }) => {
  const output = join(folder, "generated");
  const written = await write(ROOT, output);
  assert.ok(written.length > 30 && written.every(({ kind }) => kind === "missing"));
  assert.equal(await write(ROOT, output), []);
});

test("a change of a schema changes the banner of every file", async ({ folder }) => {
  const schema = join(folder, "schema");
  cpSync(join(ROOT, "schema"), schema, { recursive: true });
  const file = join(schema, "key.schema.json");
  writeFileSync(
    file,
    readFileSync(file, "utf8").replace("The key of one stored object.", "The key of an object."),
  );
  const changed = await check(folder, join(ROOT, "generated"));
  assert.is(changed.length, (await generate()).size);
  assert.ok(changed.every(({ kind }) => kind === "differs"));
});

test("what ajv's strict mode would only log stops the generator", async ({ folder }) => {
  const schema = join(folder, "schema");
  cpSync(join(ROOT, "schema"), schema, { recursive: true });
  const file = join(schema, "request.schema.json");
  writeFileSync(file, readFileSync(file, "utf8").replaceAll('"minItems": 3', '"minItems": 2'));
  await assertRejects(() => generate(folder), /prefixItems/);
});

test("a file that is no JSON is named", async ({ folder }) => {
  mkdirSync(join(folder, "schema"));
  writeFileSync(join(folder, "schema/key.schema.json"), "{");
  await assertRejects(() => generate(folder), /key\.schema\.json: /, SchemaProblem);
});

async function assertRejects(
  run: () => Promise<unknown>,
  message: RegExp,
  type: new (...args: never[]) => Error = Error,
): Promise<void> {
  try {
    await run();
  } catch (error) {
    assert.instance(error, type);
    assert.match((error as Error).message, message);
    return;
  }
  assert.unreachable("it did not fail");
}

test.run();
