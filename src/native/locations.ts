import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The environment variable that names the addon's file; nothing else is tried when it is set. */
export const ADDON_VARIABLE = "MOONCAKE_KV_ADDON";

/** The folder of the package this module belongs to, from the sources and from `dist` alike. */
export function packageRoot(from: string = fileURLToPath(import.meta.url)): string {
  for (let folder = dirname(from); ; folder = dirname(folder)) {
    if (manifestOf(folder)?.name === "mooncake-kv") return folder;
    if (folder === dirname(folder)) return dirname(from);
  }
}

/** The version in the package.json of `root`; undefined where there is none. */
export function versionOfPackage(root: string): string | undefined {
  const version = manifestOf(root)?.version;
  return typeof version === "string" ? version : undefined;
}

/**
 * The files that may be the addon, in the order in which they are tried: what was built on this machine, as somebody
 * had a reason to build it, then what the package brought along.
 */
export function addonCandidates(root: string, environment: NodeJS.ProcessEnv): string[] {
  const chosen = environment[ADDON_VARIABLE];
  if (chosen) return [chosen];
  return [
    builtAddon(join(root, "build")),
    join(root, "build", "Release", "mooncake_kv.node"),
    builtAddon(cacheFolder(root, environment)),
    prebuiltAddon(root),
  ];
}

/** The addon inside a folder that cmake-js built into. */
export function builtAddon(folder: string): string {
  return join(folder, "RelWithDebInfo", "mooncake_kv.node");
}

/** The addon that the package brings along for this platform. */
export function prebuiltAddon(root: string): string {
  return join(root, "prebuilds", `${process.platform}-${process.arch}`, "mooncake_kv.node");
}

/**
 * Where the addon is built when the package's own folder may not be written. Each version has a folder of its own:
 * after an upgrade nothing old is found.
 */
export function cacheFolder(root: string, environment: NodeJS.ProcessEnv): string {
  const chosen = environment["XDG_CACHE_HOME"];
  const home = chosen && isAbsolute(chosen) ? chosen : join(environment["HOME"] || homedir(), ".cache");
  return join(home, "mooncake-kv", `${versionOfPackage(root)}-${process.platform}-${process.arch}`);
}

function manifestOf(folder: string): { readonly name?: unknown; readonly version?: unknown } | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  } catch {
    return undefined;
  }
}
