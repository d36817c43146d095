import { execFile } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** The module under test, for scripts that run elsewhere. */
export const storeModule: string = pathToFileURL(join("src", "store", "open-store.ts")).href;

/** How a script ended. */
export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly output: string;
  /** Milliseconds since it first printed something: loading the modules takes longer than what is measured. */
  readonly ms: number;
}

/** Runs a script in a process of its own; it has `open(options)`, which opens a store on the library. */
export function runScript(
  library: string,
  script: string,
  environment: Record<string, string> = {},
): Promise<Ended> {
  const source = `
    import { openStore } from ${JSON.stringify(storeModule)};
    const open = (options) => openStore({ backend: "mooncake-native", library: ${JSON.stringify(library)}, master: "m:1", localHostname: "h", ...options });
    ${script}`;
  return new Promise((resolve) => {
    let first = 0;
    const child = execFile(
      process.execPath,
      ["--import", "tsx", "--input-type=module", "--eval", source],
      { env: { ...process.env, ...environment }, timeout: 30_000, killSignal: "SIGKILL" },
      (_error, stdout, stderr) =>
        resolve({
          code: child.exitCode,
          signal: child.signalCode,
          output: stdout + stderr,
          ms: performance.now() - first,
        }),
    );
    child.stdout!.on("data", () => {
      if (first === 0) first = performance.now();
    });
  });
}
