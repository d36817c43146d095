import { accessSync, constants, existsSync, mkdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { join } from "node:path";
import { MooncakeKvError } from "../../errors.js";
import { cacheFolder } from "../../native/locations.js";

/**
 * The folder to build the addon in: `build` in the package, or one in the user's cache where the package may not be
 * written, as after `sudo npm install -g`. The loader looks in both.
 *
 * @throws MooncakeKvError `ERR_NATIVE` when neither can be written.
 */
export function buildFolder(packageRoot: string, environment: NodeJS.ProcessEnv): string {
  const folders = [join(packageRoot, "build"), cacheFolder(packageRoot, environment)];
  const reasons: string[] = [];
  for (const folder of folders)
    try {
      mkdirSync(folder, { recursive: true });
      accessSync(folder, constants.W_OK);
      return folder;
    } catch (error) {
      reasons.push(`${folder}: ${(error as Error).message}`);
    }
  throw new MooncakeKvError(
    "ERR_NATIVE",
    `there is no folder to build in: ${reasons.join("; ")}. Make one of them writable, or set XDG_CACHE_HOME`,
    { folders, reasons },
  );
}

/** Makes CMake start anew where the folder was set up for sources or headers in other places: it would fail, or use them. */
export function forgetOtherSetup(
  folder: string,
  expected: Readonly<Record<"CMAKE_HOME_DIRECTORY" | "MOONCAKE_KV_NODE_ADDON_API", string>>,
): void {
  const cache = join(folder, "CMakeCache.txt");
  if (!existsSync(cache)) return;
  const entries = new Map(
    [...readFileSync(cache, "utf8").matchAll(/^(\w+):\w+=(.*)$/gm)].map(([, name, value]) => [name, value]),
  );
  for (const [name, value] of Object.entries(expected)) {
    const found = entries.get(name);
    if (found !== undefined && samePlace(found, value)) continue;
    // A build by npm run build:native has found the headers by itself.
    if (found === undefined && name !== "CMAKE_HOME_DIRECTORY") continue;
    rmSync(cache);
    rmSync(join(folder, "CMakeFiles"), { recursive: true, force: true });
    return;
  }
}

function samePlace(one: string, other: string): boolean {
  try {
    return realpathSync(one) === realpathSync(other);
  } catch {
    return false;
  }
}
