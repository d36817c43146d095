import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../native/locations.js";

export { packageRoot } from "../native/locations.js";

/** The version in the package's own package.json. */
export function packageVersion(): string {
  const manifest = JSON.parse(readFileSync(join(packageRoot(), "package.json"), "utf8")) as {
    readonly version: string;
  };
  return manifest.version;
}
