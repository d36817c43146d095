import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Schema, type SchemaFile, SchemaProblem, type SchemaSet } from "../schema.js";

const SUFFIX = ".schema.json";

/** Pass 1: reads every `*.schema.json` of a folder, in the order of their names. */
export async function loadSchemas(folder: string): Promise<SchemaSet> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(SUFFIX)).sort();
  const hash = createHash("sha256");
  const files: SchemaFile[] = [];
  for (const fileName of names) {
    const text = await readFile(join(folder, fileName), "utf8");
    hash.update(`${fileName}\0${text}\0`);
    files.push({ family: fileName.slice(0, -SUFFIX.length), fileName, schema: parse(fileName, text) });
  }
  return { files, hash: hash.digest("hex") };
}

function parse(fileName: string, text: string): Schema {
  try {
    return JSON.parse(text) as Schema;
  } catch (error) {
    throw new SchemaProblem([`${fileName}: ${(error as Error).message}`]);
  }
}
