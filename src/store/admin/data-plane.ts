import { CODE } from "../shared/codes.js";
import type { Deadline } from "../shared/deadline.js";
import { type ByteSink, DataConnection } from "./data-connection.js";
import { type Endpoint, formatEndpoint } from "./endpoint.js";
import { adminFailure } from "./failure.js";
import { askDataEndpoint } from "./handshake.js";

/** Milliseconds after which an idle connection is closed. */
const IDLE_MS = 5_000;

/** Owners that are remembered; a cluster has fewer, unless its master makes them up. */
const MOST_OWNERS = 1024;

/** What is known about one owner of memory. */
interface Owner {
  /** Where it serves its bytes. */
  endpoint: Endpoint;
  /** Connections that nobody uses, the one used last at the end. */
  readonly idle: { readonly connection: DataConnection; readonly timer: NodeJS.Timeout }[];
}

/** Reads the memory of segment owners. Connections are kept for the next read; a connection serves one at a time. */
export class DataPlane {
  readonly #owners = new Map<string, Owner>();
  #closed = false;

  /**
   * Reads `size` bytes at `address` of the owner whose handshake port is `handshake`. `restart` is called before bytes
   * come from the start again.
   *
   * @throws AdminFailure as `askDataEndpoint` and `DataConnection.read`.
   */
  async read(
    handshake: Endpoint,
    address: bigint,
    size: bigint,
    sink: ByteSink,
    restart: () => void,
    deadline: Deadline,
  ): Promise<void> {
    const name = formatEndpoint(handshake);
    const known = this.#owners.get(name);
    if (known !== undefined) {
      try {
        await this.#readFrom(known, address, size, sink, deadline);
        return;
      } catch (error) {
        if (deadline.expired || adminFailure(error).storeCode !== CODE.TRANSFER_FAIL) throw error;
        // The owner closed the idle connection, or was started again and serves elsewhere: ask it anew.
        this.#forget(name, known);
        restart();
      }
    }
    const owner: Owner = { endpoint: await askDataEndpoint(handshake, deadline), idle: [] };
    await this.#readFrom(owner, address, size, sink, deadline);
    if (this.#closed || this.#owners.has(name)) closeIdle(owner);
    else this.#remember(name, owner);
  }

  close(): void {
    this.#closed = true;
    for (const [name, owner] of this.#owners) this.#forget(name, owner);
  }

  async #readFrom(
    owner: Owner,
    address: bigint,
    size: bigint,
    sink: ByteSink,
    deadline: Deadline,
  ): Promise<void> {
    const connection =
      takeIdle(owner) ?? new DataConnection(owner.endpoint, () => dropIdle(owner, connection));
    connection.hold(true);
    try {
      await connection.read(address, size, sink, deadline);
    } catch (error) {
      connection.destroy();
      throw error;
    }
    if (this.#closed || !connection.usable) connection.destroy();
    else keepIdle(owner, connection);
  }

  #remember(name: string, owner: Owner): void {
    const [oldest] = this.#owners;
    if (this.#owners.size === MOST_OWNERS) this.#forget(...oldest!);
    this.#owners.set(name, owner);
  }

  #forget(name: string, owner: Owner): void {
    if (this.#owners.get(name) === owner) this.#owners.delete(name);
    closeIdle(owner);
  }
}

function takeIdle(owner: Owner): DataConnection | undefined {
  for (let last = owner.idle.pop(); last !== undefined; last = owner.idle.pop()) {
    clearTimeout(last.timer);
    if (last.connection.usable) return last.connection;
    last.connection.destroy();
  }
  return undefined;
}

function keepIdle(owner: Owner, connection: DataConnection): void {
  connection.hold(false);
  const timer = setTimeout(() => connection.destroy(), IDLE_MS);
  timer.unref();
  owner.idle.push({ connection, timer });
}

function dropIdle(owner: Owner, connection: DataConnection): void {
  const at = owner.idle.findIndex((entry) => entry.connection === connection);
  if (at >= 0) clearTimeout(owner.idle.splice(at, 1)[0]!.timer);
}

function closeIdle(owner: Owner): void {
  for (const { connection, timer } of owner.idle.splice(0)) {
    clearTimeout(timer);
    connection.destroy();
  }
}
