import type { Command } from "commander";
import { isMooncakeKvError } from "../../errors.js";
import type { CommandContext } from "../command.js";
import { jsonText } from "../json.js";
import { buildNativeAddon } from "../native-build/native-build.js";
import type { JsonOption } from "../options.js";
import { packageRoot } from "../package-root.js";

interface BuildOptions extends JsonOption {
  readonly quiet?: true | undefined;
}

const HELP = `
Needs a C++20 compiler and CMake, and the npm packages cmake-js and node-addon-api in your project (installed globally
where mooncake-kv is). The package brings the addon for Linux with glibc 2.28 or later on x64 and arm64: there a build
is needed only for what you changed. Where the package's folder may not be written, the addon goes into your cache.
Everything that is pure works without the addon: hashes, keys, chunks, layouts, validation, conformance.

Exit status: that of the build.`;

/** `mooncake-kv build` */
export function define(command: Command, context: CommandContext): void {
  command
    .option("-q, --quiet", "print the compiler's output only when it fails")
    .option("--json", "print JSON, and the compiler's output only when it fails")
    .addHelpText("after", HELP)
    .action((options: BuildOptions) => run(options, context));
}

async function run({ quiet: wanted, json }: BuildOptions, context: CommandContext): Promise<void> {
  // Nothing may stand between JSON and its reader.
  const quiet = wanted === true || json === true;
  try {
    const addon = await buildNativeAddon(packageRoot(), { quiet, environment: { ...context.env } });
    await context.stdout.line(json ? jsonText({ addon }) : addon);
  } catch (error) {
    const exitCode = isMooncakeKvError(error, "ERR_NATIVE") ? error.details["exitCode"] : undefined;
    if (!isMooncakeKvError(error) || typeof exitCode !== "number") throw error;
    if (quiet) await context.stderr.write(String(error.details["output"]));
    await context.stderr.line(`mooncake-kv: ${error.code}: cmake-js build ended with ${exitCode}`);
    context.exitCode = exitCode;
  }
}
