import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import type { NativeChildGuard } from "../../native/addon.js";
import { loadNative } from "../../native/load.js";
import { packageRoot } from "../../native/locations.js";
import { sidecarError } from "./failure.js";
import type { LogBuffer } from "./log-buffer.js";
import { encodeMessage, MessageReader } from "./message.js";

/** The descriptors of the sockets in the sidecar: one for messages, one that tells of messages that nobody reads yet. */
const MESSAGES = 3;
const BELL = 4;

/** How a sidecar is started. */
export interface SidecarLaunch {
  /** The Python that has Mooncake's package. */
  readonly python: string;
  /** Commands that may run at a time. */
  readonly threads: number;
  readonly environment: NodeJS.ProcessEnv;
  /** Descriptors of this process that the sidecar inherits, from `INHERITED` on. */
  readonly descriptors: readonly number[];
  /** Milliseconds without a sign of life after which the sidecar counts as dead. */
  readonly unresponsiveMs: number;
  /** Where Mooncake's log goes. */
  readonly log: LogBuffer;
}

const RING: Uint8Array = Uint8Array.of(1);

/** The first inherited descriptor in the sidecar. */
export const INHERITED: number = BELL + 1;

/** What Mooncake reads from its environment, unless the user says otherwise. */
const DEFAULTS: Readonly<Record<string, string>> = {
  // The largest value that Mooncake takes: otherwise a batch of more than 1,024 pieces fails or hangs.
  MC_TCP_MAX_QUEUED_TRANSFERS_PER_PEER: "65535",
  // Try once; whoever waits has a deadline.
  MC_STORE_CLIENT_SETUP_RETRIES: "1",
  MC_RPC_CONNECT_TIMEOUT_MS: "4000",
  MC_RPC_TIMEOUT_MS: "10000",
  MC_TCP_STATUS_TIMEOUT_SEC: "10",
};

/** A running sidecar, as a process that takes messages and gives messages. */
export class SidecarProcess {
  readonly pid: number | undefined;
  /** Resolves when the process is gone, with how it ended. */
  readonly ended: Promise<string>;
  onMessage: (frames: Uint8Array[]) => void = () => {};
  /** Bytes of the longest message that is due. */
  longestMessage: () => number = () => 0;
  readonly #child: ChildProcess;
  /** Ends the process with a worker thread that is terminated, and leaves no zombie of it. */
  readonly #guard: NativeChildGuard | undefined;
  readonly #socket: Socket;
  readonly #bell: Socket;
  readonly #reader = new MessageReader(() => this.longestMessage());
  #problem: string | undefined;

  constructor({ python, threads, environment, descriptors, log }: SidecarLaunch) {
    const root = packageRoot();
    const script = join(root, "src", "store", "mooncake", "sidecar", "main.py");
    const types = join(root, "generated", "python");
    try {
      this.#child = spawn(
        python,
        ["-B", "-u", script, String(MESSAGES), String(BELL), String(threads), types],
        {
          stdio: ["ignore", "pipe", "pipe", "pipe", "pipe", ...descriptors],
          // A group of its own: Ctrl-C reaches this process alone, and it decides.
          detached: true,
          env: { ...DEFAULTS, ...environment },
        },
      );
    } catch (error) {
      // Some names of programs Node refuses at once.
      throw sidecarError(`${python} can't be started: ${(error as Error).message}`, { python }, error);
    }
    this.pid = this.#child.pid;
    this.#guard = this.pid === undefined ? undefined : loadNative().childGuard(this.pid);
    this.ended = new Promise((resolve) => {
      this.#child.once("error", (error) => resolve(`can't be started: ${error.message}`));
      this.#child.once("exit", (code, signal) => {
        if (this.#guard !== undefined) loadNative().childRelease(this.#guard);
        const how = signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`;
        resolve(this.#problem === undefined ? how : `${this.#problem} (it ${how})`);
      });
    });
    const socket = this.#child.stdio?.[MESSAGES] as Socket | undefined;
    // Too many open files: Node gives up before it has made the streams.
    const bell = this.#child.stdio?.[BELL] as Socket | undefined;
    if (!socket || !bell)
      throw sidecarError(`the process can't be started with ${python}: too many open files`);
    this.#socket = socket;
    this.#bell = bell;
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on("data", (chunk: Buffer) => log.push(chunk));
      stream?.on("error", () => {});
      (stream as Socket | null)?.unref();
    }
    // Whatever goes wrong with the sockets, the process ends with them: that is where it is told.
    for (const end of [socket, bell]) end.on("error", () => this.#child.kill("SIGKILL"));
    bell.unref();
    this.#socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    this.hold(false);
    this.#child.unref();
  }

  /** Sends a message; Node keeps it until the socket takes it. */
  send(frames: readonly Uint8Array[]): void {
    const parts = encodeMessage(frames);
    if (parts.length > 1) this.#socket.cork();
    for (const part of parts) this.#socket.write(part);
    if (parts.length > 1) this.#socket.uncork();
  }

  /** Tells the process that a message was sent while it runs a command that came alone. */
  ring(): void {
    this.#bell.write(RING);
  }

  /** Whether the process keeps Node's event loop alive: while there is something to wait for. */
  hold(wanted: boolean): void {
    if (wanted) this.#socket.ref();
    else this.#socket.unref();
  }

  /** Ends the process at once, whatever it does; `ended` then gives the reason. */
  kill(reason: string): void {
    this.#problem ??= reason;
    // It takes no time, and somebody waits for it.
    this.#child.ref();
    this.#child.kill("SIGKILL");
  }

  /** Closes this end of the socket: the process ends by itself. */
  disconnect(): void {
    this.#socket.destroy();
    this.#bell.destroy();
  }

  /** Whether the system says that the process is stopped, as SIGSTOP does it. */
  isStopped(): boolean {
    try {
      const status = readFileSync(`/proc/${this.pid}/stat`, "latin1");
      // The state follows the name, which is in parentheses and may hold anything.
      return /^[Tt]/.test(status.slice(status.lastIndexOf(")") + 2));
    } catch {
      return false;
    }
  }

  #receive(chunk: Buffer): void {
    let messages: Uint8Array[][];
    try {
      messages = this.#reader.push(chunk);
    } catch (error) {
      this.kill(`what it sent can't be read: ${(error as Error).message}`);
      return;
    }
    for (const frames of messages) this.onMessage(frames);
  }
}
