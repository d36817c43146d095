import type { Router } from "zeromq";
import { configError } from "./errors.js";
import { isReset, messageOf } from "./lookup-frames.js";
import {
  type LookupCounters,
  type LookupHandlers,
  LookupResponder,
  type LookupResponderOptions,
  RESPONDER_OPTIONS,
} from "./lookup-responder.js";
import { checkNames, wholeOption } from "./options.js";
import { clearSocketFile, removeSocketFile } from "./socket-file.js";
import { loadZeroMq, plainFrames } from "./zeromq.js";

/** Where and how a lookup server answers. */
export interface LookupKeyServerOptions extends LookupResponderOptions {
  /** What `lookupSocketPath` gives, or any other ZeroMQ address to bind. */
  readonly socketPath: string;
  /**
   * Bytes of one frame at most; who sends a larger one is cut off and gets no answer. Default: 32 MiB, which are 1,048,576
   * hashes of 32 bytes.
   */
  readonly maxMessageBytes?: number | undefined;
}

const MIB = 2 ** 20;
/** Requests of one asker that wait at most; vLLM's scheduler has one. */
const WAITING_REQUESTS = 8;
/** Milliseconds between two attempts to receive at most, while none succeeds. */
const LONGEST_PAUSE_MS = 1_000;

/**
 * Answers the lookups of vLLM's scheduler over ZeroMQ, in every form they have had. Mirrors vLLM's `LookupKeyServer`,
 * but a request that can't be read, or a handler that throws, ends in a miss instead of in silence. Lookups are answered
 * one after the other; a reset goes on beside them.
 */
export class LookupKeyServer {
  readonly socketPath: string;
  readonly #socket: Router;
  readonly #responder: LookupResponder;
  #sending: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | undefined;

  private constructor(socketPath: string, socket: Router, responder: LookupResponder) {
    this.socketPath = socketPath;
    this.#socket = socket;
    this.#responder = responder;
    void this.#run();
  }

  /**
   * Binds the socket and begins to answer.
   *
   * @throws MooncakeKvError `ERR_CONFIG` for an option that can't be, when zeromq is not installed, the path is too long or
   * is no socket, or somebody else answers there.
   */
  static async listen(handlers: LookupHandlers, options: LookupKeyServerOptions): Promise<LookupKeyServer> {
    checkNames("a lookup server", options, ["socketPath", "maxMessageBytes", ...RESPONDER_OPTIONS]);
    const { socketPath, maxMessageBytes, ...responding } = options;
    const maxMessageSize = wholeOption("maxMessageBytes", maxMessageBytes, 32 * MIB);
    const responder = new LookupResponder(handlers, responding);
    await clearSocketFile(socketPath);
    // A reply socket would take no lookup before the answer to a reset is out.
    const { Router } = await loadZeroMq();
    const socket = new Router({ linger: 0, maxMessageSize, receiveHighWaterMark: WAITING_REQUESTS });
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
      this.#responder.close();
    }
    await this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #run(): Promise<void> {
    let pauseMs = 1;
    while (this.#closing === undefined) {
      let message: Uint8Array[];
      try {
        message = await this.#socket.receive();
        pauseMs = 1;
      } catch {
        if (this.#closing !== undefined) return;
        // Whatever the reason is, this must not spin.
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
        pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
        continue;
      }
      // Who asked: everything up to the empty frame that a request socket puts before its request.
      const head = message.findIndex((frame) => frame.length === 0) + 1 || 1;
      const frames = plainFrames(message.slice(head));
      const answered = this.#answer(message.slice(0, head), frames);
      if (!isReset(frames)) await answered;
    }
  }

  async #answer(asker: readonly Uint8Array[], frames: readonly Uint8Array[]): Promise<void> {
    const reply = await this.#responder.respond(frames);
    // One message at a time. Who asked may be gone, and the socket closed.
    this.#sending = this.#sending.then(() => this.#socket.send([...asker, reply])).catch(() => {});
  }
}
