import { spawn } from "node:child_process";

/** How a child process ended. */
export interface Outcome {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly timedOut: boolean;
  /** stdout and stderr as they came. */
  readonly output: string;
}

/** Runs a command to its end or to its timeout; kills its whole process group then. */
export function runProcess(command: string, args: readonly string[], timeoutMs: number): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { detached: true, stdio: ["ignore", "pipe", "pipe"] });
    const chunks: Buffer[] = [];
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      killGroup(child.pid);
      // What left the group may hold the output open: it is not waited for.
      setTimeout(() => finish(child.exitCode, child.signalCode), 5_000);
    }, timeoutMs);
    const finish = (code: number | null, signal: NodeJS.Signals | null) => {
      clearTimeout(timer);
      for (const stream of [child.stdout, child.stderr]) stream.destroy();
      resolve({ code, signal, timedOut, output: Buffer.concat(chunks).toString("utf8") });
    };
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => chunks.push(chunk));
    child.on("error", (error) => {
      chunks.push(Buffer.from(String(error)));
      finish(127, null);
    });
    child.on("close", finish);
  });
}

/** Ends a process group, where there still is one. */
function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Everybody in it has ended.
  }
}
