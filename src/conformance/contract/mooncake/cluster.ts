import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { packageRoot } from "../../../native/locations.js";
import type { MooncakeInstallation } from "./installation.js";

/** It is no TypeScript, so the package has it where its sources are. */
const CHILD: string = join(packageRoot(), "src/conformance/contract/mooncake/child.py");
const HOST = "127.0.0.1";

/** What a cluster is made of. */
export interface ClusterSetup {
  readonly leaseTtlMs?: number | undefined;
  /** Further flags of the master, by name. */
  readonly masterFlags?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** Bytes of the segment of the owner `O`; 0: no owner. Default: 128 MiB. */
  readonly segmentBytes?: number | undefined;
}

/** A real master and owner processes on free loopback ports. Disposing of it leaves nothing behind. */
export class MooncakeCluster implements AsyncDisposable {
  readonly masterAddress: string;
  readonly adminUrl: string;
  readonly #installation: MooncakeInstallation;
  readonly #setup: ClusterSetup;
  readonly #ports: readonly [rpc: number, admin: number];
  readonly #owners = new Map<string, ChildProcess>();
  #master: ChildProcess | undefined;

  private constructor(
    installation: MooncakeInstallation,
    setup: ClusterSetup,
    ports: readonly [number, number],
  ) {
    this.#installation = installation;
    this.#setup = setup;
    this.#ports = ports;
    this.masterAddress = `${HOST}:${ports[0]}`;
    this.adminUrl = `http://${HOST}:${ports[1]}`;
  }

  /** Starts the master and the owner `O`. @throws Error where one of them does not start; nothing is left behind then. */
  static async start(installation: MooncakeInstallation, setup: ClusterSetup = {}): Promise<MooncakeCluster> {
    const cluster = new MooncakeCluster(installation, setup, await freePorts());
    try {
      await cluster.startMaster();
      const bytes = setup.segmentBytes ?? 128 << 20;
      if (bytes > 0) await cluster.startOwner("O", bytes);
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Starts the master, on the same ports as before. */
  async startMaster(): Promise<void> {
    const flags = {
      rpc_port: this.#ports[0],
      metrics_port: this.#ports[1],
      rpc_address: HOST,
      default_kv_lease_ttl: this.#setup.leaseTtlMs ?? 10_000,
      ...this.#setup.masterFlags,
    };
    const listed = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
    this.#master = this.#spawn(["master", this.#installation.master, ...listed], "ignore");
    await reachable(this.#ports[0], this.#master);
    await reachable(this.#ports[1], this.#master);
  }

  /** Starts an owner process, or starts it anew; gives its host:port. */
  async startOwner(name: string, segmentBytes: number): Promise<string> {
    await this.kill(name);
    const owner = this.#spawn(["owner", this.masterAddress, String(segmentBytes), HOST], "pipe");
    this.#owners.set(name, owner);
    const line = await firstLine(owner);
    if (!line.startsWith("ready ")) throw new Error(`owner ${name}: ${line}`);
    return line.slice("ready ".length);
  }

  /** Mooncake's own Python client. */
  async startClient(): Promise<PythonClient> {
    return PythonClient.start(this.#spawn(["client", this.masterAddress], "pipe"));
  }

  /** Sends a signal to the master, or to an owner by its name. After SIGSTOP it waits until the process stands. */
  async signal(name: "master" | (string & {}), signal: NodeJS.Signals): Promise<void> {
    const child = name === "master" ? this.#master : this.#owners.get(name);
    child?.kill(signal);
    if (signal !== "SIGSTOP" || child?.pid === undefined) return;
    for (let wait = 0; wait < 500 && !standsStill(child.pid); wait++) await sleep(10);
  }

  /** Ends the master, or an owner, and waits for it. */
  async kill(name: "master" | (string & {}), signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const child = name === "master" ? this.#master : this.#owners.get(name);
    if (child) await end(child, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(
      [...this.#owners.values(), ...(this.#master ? [this.#master] : [])].map((child) => end(child)),
    );
  }

  #spawn(args: readonly string[], stdio: "pipe" | "ignore"): ChildProcess {
    return spawn(this.#installation.python, ["-B", CHILD, ...args], {
      stdio: [stdio, stdio, "ignore"],
      env: { ...process.env, GLOG_minloglevel: "3", MC_TCP_MAX_QUEUED_TRANSFERS_PER_PEER: "65535" },
    });
  }
}

/** Mooncake's own Python client in a process of its own. Offsets stand for addresses: its memory has 64 MiB. */
export class PythonClient implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  }

  /** Waits until a `child.py client` is set up. @throws Error where that fails. */
  static async start(child: ChildProcess): Promise<PythonClient> {
    const client = new PythonClient(child);
    const code = await client.#answer();
    if (code !== 0) throw new Error(`the Python client's setup gave ${code}`);
    return client;
  }

  /** A method of Mooncake's client; the second argument of calls on memory holds offsets. */
  async call<T = number[]>(method: string, ...args: readonly unknown[]): Promise<T> {
    this.#child.stdin!.write(`${JSON.stringify([method, ...args])}\n`);
    return (await this.#answer()) as T;
  }

  /** Writes into its memory. */
  async write(offset: number, bytes: Uint8Array): Promise<void> {
    await this.call("write", offset, Buffer.from(bytes).toString("hex"));
  }

  /** Reads from its memory. */
  async read(offset: number, size: number): Promise<Uint8Array> {
    return Buffer.from(await this.call<string>("read", offset, size), "hex");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await end(this.#child);
  }

  async #answer(): Promise<unknown> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error("the Python client has ended");
    return JSON.parse(value);
  }
}

async function end(child: ChildProcess, signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill(signal);
  await ended;
}

async function firstLine(child: ChildProcess): Promise<string> {
  const lines = createInterface({ input: child.stdout! });
  const line = await Promise.race([
    once(lines, "line").then(([text]) => text as string),
    once(child, "exit").then(([code]) => `ended with ${code}`),
  ]);
  lines.close();
  child.stdout!.resume();
  return line;
}

/** Waits until somebody listens on a port. */
async function reachable(port: number, child: ChildProcess): Promise<void> {
  for (let attempt = 0; attempt < 500; attempt++) {
    if (child.exitCode !== null) throw new Error(`the master ended with ${child.exitCode}`);
    const socket = connect({ host: HOST, port });
    const open = await new Promise<boolean>((resolve) => {
      socket.once("connect", () => resolve(true));
      socket.once("error", () => resolve(false));
    });
    socket.destroy();
    if (open) return;
    await sleep(20);
  }
  throw new Error(`nobody listens on port ${port}`);
}

/** Two ports that nobody uses now. */
async function freePorts(): Promise<[number, number]> {
  const servers = [createServer(), createServer()];
  for (const server of servers) {
    server.listen(0, HOST);
    await once(server, "listening");
  }
  const [rpc, admin] = servers.map((server) => (server.address() as { port: number }).port);
  for (const server of servers) {
    server.close();
    await once(server, "close");
  }
  return [rpc!, admin!];
}

/** Whether every thread of a process is stopped: the signal takes effect a moment after it was sent. */
function standsStill(pid: number): boolean {
  return readdirSync(`/proc/${pid}/task`).every((thread) => {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T");
  });
}
