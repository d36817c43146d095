import { existsSync } from "node:fs";
import { join } from "node:path";
import { MooncakeKvError } from "../../errors.js";
import { builtAddon } from "../../native/locations.js";
import { buildFolder, forgetOtherSetup } from "./build-folder.js";
import { locateTools } from "./build-tools.js";
import { runInGroup } from "./process-group.js";

/** How much of a quiet build's output is kept for its error, in characters. */
const KEPT_OUTPUT = 8000;

/** How `buildNativeAddon` behaves. */
export interface BuildOptions {
  /** Keep the compiler's output to oneself; its end is then in the error. Default: it goes to this terminal. */
  readonly quiet?: boolean | undefined;
  /** Sees the output of a quiet build as it comes. */
  readonly onOutput?: ((text: string) => void) | undefined;
  /** Default: that of this process. */
  readonly environment?: NodeJS.ProcessEnv | undefined;
}

/**
 * Compiles the addon of the package in `packageRoot` with cmake-js, into its `build` folder or, where that can't be
 * written, the user's cache. A signal that ends this process ends the build with it.
 *
 * @returns the addon's file.
 * @throws MooncakeKvError `ERR_NATIVE` when a tool is missing or the build fails; `details.exitCode` is then the
 * compiler's.
 */
export async function buildNativeAddon(packageRoot: string, options: BuildOptions = {}): Promise<string> {
  const { cmakeJs, headers } = locateTools(packageRoot);
  if (!existsSync(join(packageRoot, "CMakeLists.txt")))
    throw new MooncakeKvError(
      "ERR_NATIVE",
      `there is no CMakeLists.txt in ${packageRoot}: this copy of the package came without its native sources`,
      { packageRoot },
    );
  const folder = buildFolder(packageRoot, options.environment ?? process.env);
  forgetOtherSetup(folder, {
    CMAKE_HOME_DIRECTORY: packageRoot,
    MOONCAKE_KV_NODE_ADDON_API: headers,
  });
  let output = "";
  const keep = (text: string) => {
    output = (output + text).slice(-KEPT_OUTPUT);
    options.onOutput?.(text);
  };
  const argv = [cmakeJs, "build", "-B", "RelWithDebInfo", "-d", packageRoot, "-O", folder];
  argv.push(`--CDMOONCAKE_KV_NODE_ADDON_API=${headers}`);
  // Under Yarn's Plug'n'Play a module is found only with the hooks that this process was started with.
  if (process.versions["pnp"]) argv.unshift(...process.execArgv);
  const exitCode = await runInGroup(process.execPath, argv, {
    cwd: packageRoot,
    ...(options.quiet ? { onOutput: keep } : {}),
  });
  if (exitCode !== 0)
    throw new MooncakeKvError(
      "ERR_NATIVE",
      `cmake-js build ended with ${exitCode}; it needs CMake and a C++20 compiler on the PATH${tail(output)}`,
      { exitCode, packageRoot, output },
    );
  const addon = builtAddon(folder);
  if (!existsSync(addon))
    throw new MooncakeKvError("ERR_NATIVE", `cmake-js build succeeded, but ${addon} is not there`, { addon });
  return addon;
}

function tail(output: string): string {
  const last = output.trim().split("\n").at(-1)?.trim();
  return last ? `. It said: ${last}` : "";
}
