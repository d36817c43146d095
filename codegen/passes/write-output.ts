import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import type { EmittedFiles } from "../emit/emitter.js";

/** How a file on disk differs from what the generator makes. */
export interface Difference {
  /** Path under the target's folder. */
  readonly path: string;
  readonly kind: "differs" | "missing" | "extra";
}

/** Compares a folder with fresh output. An empty list means that they are equal. */
export async function compareOutput(folder: string, files: EmittedFiles): Promise<Difference[]> {
  const differences: Difference[] = [];
  const present = new Set(await listFiles(folder));
  for (const [path, text] of files) {
    if (!present.has(path)) differences.push({ path, kind: "missing" });
    else if ((await readFile(join(folder, path), "utf8")) !== text)
      differences.push({ path, kind: "differs" });
  }
  for (const path of present) if (!files.has(path)) differences.push({ path, kind: "extra" });
  return differences.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Pass 6: makes a folder equal to fresh output; files that are equal already are not touched. */
export async function writeOutput(folder: string, files: EmittedFiles): Promise<Difference[]> {
  const differences = await compareOutput(folder, files);
  for (const { path, kind } of differences) {
    const file = join(folder, path);
    if (kind === "extra") await rm(file);
    else {
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, files.get(path)!);
    }
  }
  return differences;
}

async function listFiles(folder: string): Promise<string[]> {
  try {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) =>
        join(entry.parentPath, entry.name)
          .slice(folder.length + 1)
          .split(sep)
          .join("/"),
      );
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
