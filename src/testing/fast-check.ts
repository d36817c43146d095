import { createRequire } from "node:module";
import type * as FastCheck from "fast-check";
import { MooncakeKvError } from "../errors.js";

/**
 * The package fast-check, which the user installs. Required rather than imported, since only then can its lack be told
 * in words of this package's own. Properties made with it run under whichever copy of fast-check the user imports.
 */
const fc: typeof FastCheck = load();

export default fc;

function load(): typeof FastCheck {
  try {
    return createRequire(import.meta.url)("fast-check") as typeof FastCheck;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException | undefined)?.code !== "MODULE_NOT_FOUND") throw cause;
    throw new MooncakeKvError(
      "ERR_CONFIG",
      "mooncake-kv/testing needs the package fast-check 4 or newer: npm install --save-dev fast-check",
      { package: "fast-check" },
      { cause },
    );
  }
}
