import type { Command } from "commander";
import { isMooncakeKvError } from "../../errors.js";
import type { CommandContext } from "../command.js";
import { jsonText } from "../json.js";
import { buildNativeAddon, builtAddon } from "../native-build.js";
import { addJsonOption, type JsonOption } from "../options.js";
import { packageRoot } from "../package-root.js";

interface BuildCommandOptions extends JsonOption {
  readonly quiet?: true | undefined;
}

const HELP = `
Needs a C++20 compiler and CMake, and the npm packages cmake-js and node-addon-api in your project. Everything that
is pure works without the addon: hashes, keys, chunks, layouts, validation, conformance.

Exit status: that of the build.`;

/** `mooncake-kv build` */
export function define(command: Command, context: CommandContext): void {
  command.option("-q, --quiet", "print the compiler's output only when it fails");
  addJsonOption(command)
    .addHelpText("after", HELP)
    .action((options: BuildCommandOptions) => run(options, context));
}

async function run({ quiet, json }: BuildCommandOptions, context: CommandContext): Promise<void> {
  const root = packageRoot();
  try {
    // The compiler's output would stand in front of the JSON.
    await buildNativeAddon(root, { quiet: quiet === true || json === true });
    const addon = builtAddon(root);
    await context.stdout.line(json ? jsonText({ addon }) : addon);
  } catch (error) {
    const exitCode = isMooncakeKvError(error, "ERR_NATIVE") ? error.details["exitCode"] : undefined;
    if (!isMooncakeKvError(error) || typeof exitCode !== "number") throw error;
    if (json)
      await context.stdout.line(
        jsonText({ error: { code: error.code, message: error.message, details: error.details } }),
      );
    if (quiet && !json) await context.stderr.write(String(error.details["output"]));
    else await context.stderr.line(`mooncake-kv: ${error.code}: cmake-js build ended with ${exitCode}`);
    context.exitCode = exitCode;
  }
}
