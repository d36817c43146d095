import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, MooncakeKvError } from "../../../errors.js";

/** The official wheel on this machine. */
export interface MooncakeInstallation {
  readonly python: string;
  /** The `mooncake_master` of the same wheel. */
  readonly master: string;
}

/**
 * The wheel of a Python.
 *
 * @throws MooncakeKvError `ERR_CONFIG` where that Python does not start, or can't import `mooncake.store`, or has no
 * `mooncake_master`.
 */
export function locateMooncake(python: string): MooncakeInstallation {
  try {
    const folder = execFileSync(
      python,
      ["-c", "import mooncake.store, sys; print(sys.modules['mooncake'].__path__[0])"],
      {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
      },
    ).trim();
    const master = [join(folder, "mooncake_master"), join(dirname(python), "mooncake_master")].find(
      existsSync,
    );
    if (master) return { python, master };
    throw new Error(`${folder} has no mooncake_master`);
  } catch (error) {
    const { stderr, message } = error as { stderr?: string | undefined; message: string };
    const reason = stderr?.trim().split("\n").at(-1) || message;
    throw new MooncakeKvError(
      "ERR_CONFIG",
      `there is no Mooncake wheel for ${describe(python)}: ${reason}; set MOONCAKE_KV_PYTHON to a Python that has it, or install it with: pip install mooncake-transfer-engine-non-cuda`,
      { python, reason },
    );
  }
}
