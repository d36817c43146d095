import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { MooncakeKvError } from "../errors.js";

/** Where cmake-js leaves the addon. */
const ADDON = join("build", "RelWithDebInfo", "mooncake_kv.node");

/** The npm packages that compiling needs; optional peers of this one. */
const TOOLS = ["cmake-js", "node-addon-api"] as const;

/** How much of a quiet build's output is kept for its error, in characters. */
const KEPT_OUTPUT = 8000;

/** How `buildNativeAddon` behaves. */
export interface BuildOptions {
  /** Keep the compiler's output to oneself; its end is then in the error. Default: it goes to this terminal. */
  readonly quiet?: boolean | undefined;
}

/**
 * Compiles the addon of the package in `packageRoot` with cmake-js, into `build/RelWithDebInfo/mooncake_kv.node`.
 *
 * @throws MooncakeKvError `ERR_NATIVE` when a tool is missing or the build fails; `details.exitCode` is then the
 * compiler's.
 */
export async function buildNativeAddon(packageRoot: string, options: BuildOptions = {}): Promise<void> {
  const cmakeJs = locateTools(packageRoot);
  if (!existsSync(join(packageRoot, "CMakeLists.txt")))
    throw new MooncakeKvError(
      "ERR_NATIVE",
      `there is no CMakeLists.txt in ${packageRoot}: this copy of the package came without its native sources`,
      { packageRoot },
    );
  const argv = [cmakeJs, "build", "-B", "RelWithDebInfo", "-d", packageRoot];
  const { exitCode, output } = await run(argv, packageRoot, options.quiet === true);
  if (exitCode !== 0)
    throw new MooncakeKvError(
      "ERR_NATIVE",
      `cmake-js build ended with ${exitCode}; it needs CMake and a C++20 compiler on the PATH${tail(output)}`,
      { exitCode, packageRoot, output },
    );
  const addon = join(packageRoot, ADDON);
  if (!existsSync(addon))
    throw new MooncakeKvError("ERR_NATIVE", `cmake-js build succeeded, but ${addon} is not there`, { addon });
}

/** Where the addon lies after a build in `packageRoot`. */
export function builtAddon(packageRoot: string): string {
  return join(packageRoot, ADDON);
}

/** The script of cmake-js, from the package itself or from the project that uses it. */
function locateTools(packageRoot: string): string {
  // CMake looks for node-addon-api from the package's folder, so that only cmake-js may lie elsewhere.
  const cmakeJs = locate("cmake-js", [packageRoot, process.cwd()]);
  const headers = locate("node-addon-api", [packageRoot]);
  const missing = TOOLS.filter((_, index) => [cmakeJs, headers][index] === undefined);
  if (cmakeJs === undefined || missing.length > 0)
    throw new MooncakeKvError(
      "ERR_NATIVE",
      `compiling the addon needs ${missing.join(" and ")}: run npm install ${missing.join(" ")}, then try again`,
      { missing },
    );
  const manifest = JSON.parse(readFileSync(cmakeJs, "utf8")) as { bin: string | Record<string, string> };
  const script = typeof manifest.bin === "string" ? manifest.bin : manifest.bin["cmake-js"]!;
  return join(dirname(cmakeJs), script);
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

async function run(
  argv: readonly string[],
  cwd: string,
  quiet: boolean,
): Promise<{ readonly exitCode: number; readonly output: string }> {
  const child = spawn(process.execPath, argv, { cwd, stdio: ["ignore", ...outputs(quiet)] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(-KEPT_OUTPUT);
    });
  const exitCode = await new Promise<number>((resolve, reject) => {
    child.once("error", (cause) =>
      reject(new MooncakeKvError("ERR_NATIVE", `cmake-js can't be started: ${cause.message}`, {}, { cause })),
    );
    // A signal is told as shells tell it: 128 and more.
    child.once("close", (code, signal) => resolve(code ?? (signal === null ? 1 : 128)));
  });
  return { exitCode, output };
}

function outputs(quiet: boolean): ["pipe", "pipe"] | ["inherit", "inherit"] {
  return quiet ? ["pipe", "pipe"] : ["inherit", "inherit"];
}

function tail(output: string): string {
  const last = output.trim().split("\n").at(-1)?.trim();
  return last ? `. It said: ${last}` : "";
}
