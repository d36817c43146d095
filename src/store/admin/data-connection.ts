import { connect, type Socket } from "node:net";
import { CODE } from "../shared/codes.js";
import type { Deadline } from "../shared/deadline.js";
import { type Endpoint, formatEndpoint } from "./endpoint.js";
import { AdminFailure, adminFailure, deadlinePassed } from "./failure.js";

/** Opcode of a read whose answer starts with a status. */
const READ_ACKNOWLEDGED = 0x80;

/** High half of a status: "MCTV". */
const STATUS_MAGIC = 0x4d435456;

/** Bytes of one request: an owner that has to give up early wastes no more than this. */
const PIECE: number = 16 << 20;

/** Takes the bytes of a read as they arrive. They are only valid during the call. */
export type ByteSink = (bytes: Uint8Array) => void;

/** The read that a connection is at. */
interface PendingRead {
  /** Bytes of the status that have arrived. */
  readonly status: Buffer;
  statusBytes: number;
  remaining: number;
  readonly sink: ByteSink;
  readonly resolve: () => void;
  readonly reject: (error: AdminFailure) => void;
}

/** A connection to a port that serves reads of an owner's memory, one after another. Mirrors `tcp_transport`. */
export class DataConnection {
  readonly #socket: Socket;
  readonly #where: string;
  #pending: PendingRead | undefined;
  #broken: AdminFailure | undefined;

  constructor(endpoint: Endpoint, whenClosed: () => void) {
    this.#where = `the owner's data port ${formatEndpoint(endpoint)}`;
    this.#socket = connect({ ...endpoint, noDelay: true });
    this.#socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    this.#socket.on("error", (error) => this.#break(`failed: ${error.message}`));
    this.#socket.on("close", () => {
      this.#break("closed the connection");
      whenClosed();
    });
  }

  /** Whether another read can be asked for. */
  get usable(): boolean {
    return this.#broken === undefined && this.#pending === undefined;
  }

  /** Whether it holds the process open. Idle connections should not. */
  hold(held: boolean): void {
    if (held) this.#socket.ref();
    else this.#socket.unref();
  }

  /**
   * Reads `size` bytes at `address`. After a failure the connection can't be used any more, and the sink is not called
   * again.
   *
   * @throws AdminFailure -800 when the owner refuses the address or the connection breaks, -901 at the deadline.
   */
  async read(address: bigint, size: bigint, sink: ByteSink, deadline: Deadline): Promise<void> {
    const stop = deadline.whenExpired(() =>
      this.#fail(deadlinePassed(`a read from ${this.#where}`, deadline.ms)),
    );
    try {
      for (let done = 0n; done < size; done += BigInt(PIECE)) {
        const rest = size - done;
        await this.#readPiece(address + done, rest < PIECE ? Number(rest) : PIECE, sink);
      }
    } finally {
      stop();
    }
  }

  destroy(): void {
    this.#break("was closed");
  }

  #readPiece(address: bigint, size: number, sink: ByteSink): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#broken) {
        reject(this.#broken);
        return;
      }
      this.#pending = {
        status: Buffer.alloc(8),
        statusBytes: 0,
        remaining: size,
        sink,
        resolve,
        reject,
      };
      const request = Buffer.alloc(24);
      request.writeBigUInt64LE(BigInt(size), 0);
      request.writeBigUInt64LE(address, 8);
      request[16] = READ_ACKNOWLEDGED;
      this.#socket.write(request);
    });
  }

  #receive(chunk: Buffer): void {
    const pending = this.#pending;
    if (pending === undefined) {
      this.#break("sent bytes that nobody asked for");
      return;
    }
    let at = 0;
    while (pending.statusBytes < 8 && at < chunk.length) pending.status[pending.statusBytes++] = chunk[at++]!;
    if (pending.statusBytes < 8 || (at > 0 && !this.#accepted(pending.status))) return;
    const bytes = chunk.subarray(at, at + pending.remaining);
    if (bytes.length > 0) {
      pending.remaining -= bytes.length;
      try {
        pending.sink(bytes);
      } catch (error) {
        this.#fail(adminFailure(error));
        return;
      }
    }
    if (pending.remaining > 0) return;
    this.#pending = undefined;
    if (at + bytes.length < chunk.length) this.#break("sent more bytes than were asked for");
    pending.resolve();
  }

  /** Whether a complete status says that the bytes follow; breaks the connection when not. */
  #accepted(status: Buffer): boolean {
    if (status.readUInt32LE(4) !== STATUS_MAGIC) {
      this.#break("does not speak version 2 of Mooncake's TCP transport");
      return false;
    }
    if (status.readUInt32LE(0) !== 0) {
      this.#break("refuses the address: it does not serve this memory, or not any more");
      return false;
    }
    return true;
  }

  #break(what: string): void {
    this.#fail(new AdminFailure(CODE.TRANSFER_FAIL, `${this.#where} ${what}`));
  }

  #fail(failure: AdminFailure): void {
    this.#broken ??= failure;
    this.#socket.destroy();
    const pending = this.#pending;
    this.#pending = undefined;
    pending?.reject(failure);
  }
}
