import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { packageRoot } from "../../native/locations.js";

/** What a Python says about itself and Mooncake. */
export interface PythonFacts {
  /** Version of Python. */
  readonly python: string;
  readonly executable: string;
  readonly libraries: readonly {
    readonly name: string;
    /** The Debian package that has it. */
    readonly package: string;
    /** Why it can't be loaded; empty when it can. */
    readonly problem: string;
  }[];
  readonly wheel: {
    readonly name: string;
    readonly version: string;
    readonly folder: string;
    /** Why it can't be imported; empty when it can. */
    readonly problem: string;
  };
  readonly cuda: { readonly devices: number; readonly problem: string };
}

/** Milliseconds that Python may take to answer. */
const LIMIT_MS = 20_000;

/** Asks a Python. @throws Error when there is none, or it does not answer. */
export async function pythonFacts(
  python: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<PythonFacts> {
  const script = join(packageRoot(), "src", "store", "mooncake", "sidecar", "probe.py");
  const { stdout } = await promisify(execFile)(python, ["-B", script], {
    env: { ...environment } as NodeJS.ProcessEnv,
    timeout: LIMIT_MS,
  });
  return JSON.parse(stdout) as PythonFacts;
}
