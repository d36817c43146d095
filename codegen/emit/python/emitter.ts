import { readdir, readFile } from "node:fs/promises";
import type { EmitInput, EmittedFiles } from "../emitter.js";
import { releaseModule } from "./names.js";
import { docstring } from "./source.js";
import { familyModule, hasModule } from "./types.js";

const RUNTIME: URL = new URL("../../runtime/python/", import.meta.url);

/** The Python package that the files belong to. */
const PACKAGE = "mooncake_kv";

/**
 * Pass 5 for Python: dataclasses and binary codecs of the types that have a binary form, with nothing but the standard
 * library. `generated/python` is a folder for `sys.path`.
 */
export async function emitPython(input: EmitInput): Promise<EmittedFiles> {
  const banner = input.banner.map((line) => `# ${line}\n`).join("");
  const files: EmittedFiles = new Map();
  const add = (path: string, text: string): void =>
    void files.set(`${PACKAGE}/${path}.py`, `${banner}\n${text}`);
  const about = (text: string): string => `${docstring("", text).join("\n")}\n`;
  add("__init__", about("The wire types of mooncake-kv, one subpackage a release of vLLM."));
  for (const name of (await readdir(RUNTIME)).sort())
    if (name.endsWith(".py")) add(name.slice(0, -3), await readFile(new URL(name, RUNTIME), "utf8"));
  for (const model of input.models) {
    const folder = releaseModule(model.release);
    add(`${folder}/__init__`, about(`The wire types of ${model.release}, one module a family.`));
    for (const family of model.families.filter(hasModule))
      add(`${folder}/${family.name}`, familyModule(family));
  }
  return files;
}
