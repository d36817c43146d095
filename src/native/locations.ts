import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The environment variable that names the addon's file; nothing else is tried when it is set. */
export const ADDON_VARIABLE = "MOONCAKE_KV_ADDON";

/** The folder of the package this module belongs to, from the sources and from `dist` alike. */
export function packageRoot(from: string = fileURLToPath(import.meta.url)): string {
  for (let folder = dirname(from); ; folder = dirname(folder)) {
    if (nameOfPackage(folder) === "mooncake-kv") return folder;
    if (folder === dirname(folder)) return dirname(from);
  }
}

/** The files that may be the addon, in the order in which they are tried. */
export function addonCandidates(root: string, environment: NodeJS.ProcessEnv): string[] {
  const chosen = environment[ADDON_VARIABLE];
  if (chosen) return [chosen];
  return [
    join(root, "build", "RelWithDebInfo", "mooncake_kv.node"),
    join(root, "build", "Release", "mooncake_kv.node"),
    join(root, "prebuilds", `${process.platform}-${process.arch}`, "mooncake_kv.node"),
  ];
}

function nameOfPackage(folder: string): unknown {
  try {
    return (JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { name?: unknown }).name;
  } catch {
    return undefined;
  }
}
