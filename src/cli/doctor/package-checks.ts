import { createRequire } from "node:module";
import { join } from "node:path";
import { packageRoot } from "../package-root.js";
import { type Finding, missing, ok } from "./finding.js";

/** The optional packages, and what each is for. */
const PACKAGES: Readonly<Record<string, string>> = {
  zeromq: "lookup channels and KV events",
  "prom-client": "the connector's metrics for Prometheus",
  "@huggingface/tokenizers": "texts as prompts of lookup, with --tokenizer",
  "cmake-js": "compiling the native addon, with node-addon-api",
  "node-addon-api": "compiling the native addon, with cmake-js",
};

/**
 * The optional packages, from the package and from the project. None is needed for a store; whoever wants what one is for
 * finds its name here.
 */
export function packageChecks(project: string = process.cwd()): Finding[] {
  return Object.entries(PACKAGES).map(([name, purpose]) => {
    const version = versionOf(name, [packageRoot(), project]);
    return version === undefined
      ? missing(name, false, `not installed; for ${purpose}`, [`npm install ${name}`])
      : ok(name, `${version}, for ${purpose}`);
  });
}

function versionOf(name: string, folders: readonly string[]): string | undefined {
  for (const folder of folders)
    try {
      const require = createRequire(join(folder, "package.json"));
      return (
        (require(`${name}/package.json`) as { readonly version?: string }).version ?? "of unknown version"
      );
    } catch {
      // Not to be found from there, or one that hides its package.json: then what it exports says that it is there.
      if (resolves(name, folder)) return "installed";
    }
  return undefined;
}

function resolves(name: string, folder: string): boolean {
  try {
    createRequire(join(folder, "package.json")).resolve(name);
    return true;
  } catch {
    return false;
  }
}
