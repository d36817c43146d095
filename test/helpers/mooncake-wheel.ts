import {
  locateMooncake,
  type MooncakeInstallation,
} from "../../src/conformance/contract/mooncake/installation.js";

/** The Python that tests use. */
export const PYTHON: string = process.env["MOONCAKE_KV_PYTHON"] || "python3";

/** The wheel; undefined where there is none. In CI there must be one: it fails there. */
export function findMooncake(): MooncakeInstallation | undefined {
  try {
    return locateMooncake(PYTHON);
  } catch (error) {
    if (process.env["CI"]) throw error;
    console.log((error as Error).message);
    return undefined;
  }
}
