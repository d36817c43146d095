import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { MooncakeKvError } from "../../errors.js";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Milliseconds that the command has to end by itself after a signal. */
const GRACE_MS = 5000;

/** Milliseconds that what it started has to end after it. */
const REST_MS = 1000;

/** Milliseconds between two looks at a group that is ending. */
const LOOK_MS = 20;

/** How a command is run in a process group of its own. */
export interface GroupOptions {
  readonly cwd: string;
  /** Takes what the command prints; left out, it goes to this terminal. */
  readonly onOutput?: ((text: string) => void) | undefined;
}

/**
 * Runs a command with all that it starts in a process group of its own. A signal that asks this process to end ends the
 * group first, and this process then dies of it.
 *
 * @returns the exit status; that of a command that died of a signal is 128 and the signal's number, as in shells.
 * @throws MooncakeKvError `ERR_NATIVE` when the command can't be started.
 */
export async function runInGroup(
  program: string,
  argv: readonly string[],
  options: GroupOptions,
): Promise<number> {
  const output = options.onOutput ? "pipe" : "inherit";
  const child = spawn(program, argv, {
    cwd: options.cwd,
    stdio: ["ignore", output, output],
    detached: process.platform !== "win32",
  });
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => options.onOutput?.(text));

  let received: NodeJS.Signals | undefined;
  let overdue: NodeJS.Timeout | undefined;
  const onSignal = (signal: NodeJS.Signals) => {
    received ??= signal;
    killGroup(child, signal);
    overdue ??= setTimeout(() => killGroup(child, "SIGKILL"), GRACE_MS);
  };
  const onExit = () => killGroup(child, "SIGTERM");
  for (const signal of SIGNALS) process.on(signal, onSignal);
  process.on("exit", onExit);
  try {
    const status = await ended(child, argv[0] ?? program);
    if (received !== undefined) await groupGone(child);
    return status;
  } finally {
    clearTimeout(overdue);
    for (const signal of SIGNALS) process.off(signal, onSignal);
    process.off("exit", onExit);
    // Nobody else listens, as a rule: this process ends here, of the signal that it got.
    if (received !== undefined) process.kill(process.pid, received);
  }
}

function ended(child: ChildProcess, name: string): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once("error", (cause) =>
      reject(new MooncakeKvError("ERR_NATIVE", `${name} can't be started: ${cause.message}`, {}, { cause })),
    );
    child.once("close", (code, signal) =>
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])),
    );
  });
}

/** Waits until nothing of the group is left; what is left after a while is killed. */
async function groupGone(child: ChildProcess): Promise<void> {
  const end = performance.now() + REST_MS;
  // Not longer: where nobody reaps orphans, as in some containers, the dead stay in the group.
  while (performance.now() < end) {
    if (!killGroup(child, 0)) return;
    await sleep(LOOK_MS);
  }
  killGroup(child, "SIGKILL");
}

/** Sends a signal to the group; false when there is nobody in it. */
function killGroup(child: ChildProcess, signal: NodeJS.Signals | 0): boolean {
  if (child.pid === undefined) return false;
  try {
    return process.kill(process.platform === "win32" ? child.pid : -child.pid, signal);
  } catch {
    return false;
  }
}
