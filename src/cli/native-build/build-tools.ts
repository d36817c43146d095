import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { MooncakeKvError } from "../../errors.js";

/** The npm packages that compiling needs; optional peers of this one. */
const TOOLS = ["cmake-js", "node-addon-api"] as const;

/** What compiling needs. */
export interface BuildTools {
  /** The script of cmake-js. */
  readonly cmakeJs: string;
  /** The folder of the headers of node-addon-api. */
  readonly headers: string;
}

/**
 * Finds the tools from the package, from the project in `project`, or among the packages installed globally.
 *
 * @throws MooncakeKvError `ERR_NATIVE` when one is nowhere, or where a compiler can't read it; it says what to run.
 */
export function locateTools(packageRoot: string, project: string = process.cwd()): BuildTools {
  const folders = [packageRoot, project, join(dirname(process.execPath), "..", "lib")];
  const [cmakeJs, headers] = TOOLS.map((name) => locate(name, folders));
  if (cmakeJs === undefined || headers === undefined) {
    const missing = TOOLS.filter((_, index) => [cmakeJs, headers][index] === undefined);
    throw new MooncakeKvError(
      "ERR_NATIVE",
      `compiling the addon needs ${missing.join(" and ")}: run npm install ${missing.join(" ")} (with -g where mooncake-kv is installed globally), then try again`,
      { missing },
    );
  }
  for (const [what, path] of Object.entries({
    "mooncake-kv": packageRoot,
    "node-addon-api": dirname(headers),
  }))
    if (/\.zip[\\/]/.test(path))
      throw new MooncakeKvError(
        "ERR_NATIVE",
        `${what} lies inside an archive, which no compiler reads: run yarn unplug ${what}, then try again`,
        { path },
      );
  const manifest = JSON.parse(readFileSync(cmakeJs, "utf8")) as { bin: string | Record<string, string> };
  const script = typeof manifest.bin === "string" ? manifest.bin : manifest.bin["cmake-js"]!;
  return { cmakeJs: join(dirname(cmakeJs), script), headers: dirname(headers) };
}

/** The package.json of a package as seen from the first of the folders that has it. */
function locate(name: string, folders: readonly string[]): string | undefined {
  for (const folder of folders)
    try {
      return createRequire(join(folder, "package.json")).resolve(`${name}/package.json`);
    } catch {
      // Not to be found from there.
    }
  return undefined;
}
