import type { Reply } from "zeromq";
import { configError } from "./errors.js";
import { messageOf } from "./lookup-frames.js";
import {
  type LookupCounters,
  type LookupHandlers,
  LookupResponder,
  type LookupResponderOptions,
} from "./lookup-responder.js";
import { clearSocketFile, removeSocketFile } from "./socket-file.js";
import { loadZeroMq, plainFrames } from "./zeromq.js";

/** Where and how a lookup server answers. */
export interface LookupKeyServerOptions extends LookupResponderOptions {
  /** What `lookupSocketPath` gives, or any other ZeroMQ address to bind. */
  readonly socketPath: string;
}

/**
 * Answers the lookups of vLLM's scheduler over ZeroMQ, in every form they have had. Mirrors vLLM's `LookupKeyServer`,
 * but a request that can't be read, or a handler that throws, ends in a miss instead of in silence.
 */
export class LookupKeyServer {
  readonly socketPath: string;
  readonly #socket: Reply;
  readonly #responder: LookupResponder;
  #closing: Promise<void> | undefined;

  private constructor(socketPath: string, socket: Reply, responder: LookupResponder) {
    this.socketPath = socketPath;
    this.#socket = socket;
    this.#responder = responder;
    void this.#run();
  }

  /**
   * Binds the socket and begins to answer.
   *
   * @throws MooncakeKvError `ERR_CONFIG` when zeromq is not installed, the path is too long or is no socket, or somebody
   * else answers there.
   */
  static async listen(handlers: LookupHandlers, options: LookupKeyServerOptions): Promise<LookupKeyServer> {
    const { socketPath } = options;
    const responder = new LookupResponder(handlers, options);
    await clearSocketFile(socketPath);
    const { Reply } = await loadZeroMq();
    const socket = new Reply({ linger: 0 });
    try {
      await socket.bind(socketPath);
    } catch (cause) {
      socket.close();
      throw configError(`can't bind ${socketPath}: ${messageOf(cause)}`, { socketPath }, { cause });
    }
    return new LookupKeyServer(socketPath, socket, responder);
  }

  /** How many requests there were, by what became of them. */
  get counters(): Readonly<LookupCounters> {
    return this.#responder.counters;
  }

  /** Ends the server, also under a handler that still runs, and removes the file of its socket. Closing twice is fine. */
  async close(): Promise<void> {
    if (this.#closing === undefined) {
      this.#closing = removeSocketFile(this.socketPath);
      this.#socket.close();
    }
    await this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #run(): Promise<void> {
    while (this.#closing === undefined) {
      try {
        const frames = await this.#socket.receive();
        await this.#socket.send(await this.#responder.respond(plainFrames(frames)));
      } catch {
        // The socket was closed, or the one who asked is gone: the next request finds the server ready.
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }
}
