import type { Request } from "zeromq";
import { configError, lookupError } from "./errors.js";
import { messageOf } from "./lookup-frames.js";
import { socketFile } from "./socket-path.js";
import { loadZeroMq } from "./zeromq.js";

/** Bytes of a reply at most. It has 4, and 8 for each cache group. */
const MAX_REPLY_BYTES = 2 ** 16;

/** Carries one request at a time. */
export interface LookupTransport {
  /**
   * Sends frames and waits for the reply. Not called again before it has settled.
   *
   * @throws MooncakeKvError `ERR_LOOKUP` when there is no reply in time.
   */
  request(frames: readonly Uint8Array[], timeoutMs: number): Promise<Uint8Array>;
  close(): void;
}

/**
 * A ZeroMQ REQ socket. After a request without a reply such a socket can't send again, so it is replaced by a new one;
 * a late reply to the old one is lost with it and can't be taken for the reply to a later question.
 */
export class ZeroMqLookupTransport implements LookupTransport {
  readonly #address: string;
  #socket: Request | undefined;
  #closed = false;

  /** @throws MooncakeKvError `ERR_CONFIG` when the address is none, or its path too long. */
  constructor(address: string) {
    socketFile(address);
    this.#address = address;
  }

  async request(frames: readonly Uint8Array[], timeoutMs: number): Promise<Uint8Array> {
    const deadline = performance.now() + timeoutMs;
    const socket = await this.#open();
    try {
      socket.sendTimeout = Math.max(1, Math.ceil(deadline - performance.now()));
      await socket.send([...frames]);
      socket.receiveTimeout = Math.max(1, Math.ceil(deadline - performance.now()));
      const [reply] = await socket.receive();
      return new Uint8Array(reply!.buffer, reply!.byteOffset, reply!.byteLength);
    } catch (cause) {
      this.#drop();
      if (this.#closed) throw lookupError("the lookup client was closed", {}, { cause });
      if ((cause as NodeJS.ErrnoException).code !== "EAGAIN")
        throw lookupError(`the request to ${this.#address} failed: ${messageOf(cause)}`, {}, { cause });
      throw lookupError(
        `no reply from ${this.#address} within ${Math.round(timeoutMs)} ms`,
        { timeoutMs },
        { cause },
      );
    }
  }

  close(): void {
    this.#closed = true;
    this.#drop();
  }

  async #open(): Promise<Request> {
    const { Request } = await loadZeroMq();
    if (this.#closed) throw lookupError("the lookup client was closed");
    if (this.#socket === undefined) {
      const socket = new Request({ linger: 0, maxMessageSize: MAX_REPLY_BYTES });
      try {
        socket.connect(this.#address);
      } catch (cause) {
        socket.close();
        throw configError(`can't connect to ${this.#address}: ${messageOf(cause)}`, {}, { cause });
      }
      this.#socket = socket;
    }
    return this.#socket;
  }

  #drop(): void {
    this.#socket?.close();
    this.#socket = undefined;
  }
}
