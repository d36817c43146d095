import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** How a child process ended. */
export interface ChildEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ChildOptions {
  readonly nodeArguments?: readonly string[];
  readonly scriptArguments?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
}

/**
 * Runs `test/native/fixtures/<name>` in a process of its own, so that a crash of the addon is a failed test and not
 * the end of the run. A child that does not end in time is killed, and shows the signal SIGKILL.
 */
export function runFixture(name: string, options: ChildOptions = {}): Promise<ChildEnd> {
  const script = fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));
  const child = spawn(
    process.execPath,
    [...(options.nodeArguments ?? []), "--import", "tsx", script, ...(options.scriptArguments ?? [])],
    {
      env: { ...process.env, ...options.environment },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  const output = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const)
    child[stream].setEncoding("utf8").on("data", (text: string) => {
      output[stream] += text;
    });
  const timer = setTimeout(() => child.kill("SIGKILL"), options.timeoutMs ?? 60_000);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, ...output });
    });
  });
}

/** The end of a child that should have gone well, in one line that says what went wrong otherwise. */
export function endOf({ code, signal, stdout, stderr }: ChildEnd): string {
  const last = stdout.trim().split("\n").at(-1) ?? "";
  return code === 0 ? last : `code ${code}, signal ${signal}\n${stdout}\n${stderr}`;
}
