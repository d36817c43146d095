import http from "node:http";
import https from "node:https";
import { CODE } from "../shared/codes.js";
import type { Deadline } from "../shared/deadline.js";
import { ByteCollector } from "./byte-collector.js";
import { AdminFailure, deadlinePassed } from "./failure.js";

/** An answer of the master's HTTP interface. */
export interface HttpAnswer {
  readonly status: number;
  readonly body: Buffer;
}

/** Milliseconds after which an idle connection is closed. */
const IDLE_MS = 10_000;

/** Bytes of an answer that are taken before others of this process have their turn. */
const BYTES_A_TURN = 64 << 10;

/**
 * GET requests over kept-alive connections, a bounded number at a time. Failures are `AdminFailure`: -901 for a passed
 * deadline, -900 for a server that can't be reached or says something that is no HTTP, -10 for an answer beyond its
 * limit.
 */
export class HttpClient {
  readonly #base: URL;
  readonly #agent: http.Agent;
  readonly #request: typeof http.request;

  /** `base` has no query; its path is put before every path asked for. */
  constructor(base: URL, connections: number) {
    const secure = base.protocol === "https:";
    const options = { keepAlive: true, maxSockets: connections, timeout: IDLE_MS };
    this.#base = base;
    this.#agent = secure ? new https.Agent(options) : new http.Agent(options);
    this.#request = secure ? https.request : http.request;
  }

  /** Where it asks, for messages. */
  get address(): string {
    return this.#base.href.replace(/\/$/, "");
  }

  /** The whole answer to GET `path`, which is sent as it is: one character a byte, none below 0x21. */
  async get(path: string, deadline: Deadline, mostBytes: number): Promise<HttpAnswer> {
    const body = new ByteCollector();
    const status = await this.read(path, deadline, mostBytes, (part) => body.add(part));
    return { status, body: body.take() };
  }

  /** The status of the answer to GET `path`; `sink` gets its body part by part, and nothing after the call. */
  async read(
    path: string,
    deadline: Deadline,
    mostBytes: number,
    sink: (part: Buffer) => void,
  ): Promise<number> {
    const response = await this.open(path, deadline);
    let size = 0;
    let pauseAt = BYTES_A_TURN;
    await new Promise<void>((resolve, reject) => {
      const fail = (failure: AdminFailure): void => {
        response.destroy();
        reject(failure);
      };
      const stop = deadline.whenExpired(() => fail(this.#late(deadline)));
      response.on("data", (part: Buffer) => {
        size += part.length;
        if (size > mostBytes) {
          const what = `the answer of ${this.address} is larger than ${mostBytes} bytes`;
          fail(new AdminFailure(CODE.BUFFER_OVERFLOW, what));
          return;
        }
        sink(part);
        if (size < pauseAt) return;
        pauseAt = size + BYTES_A_TURN;
        response.pause();
        setImmediate(() => response.resume());
      });
      response.on("error", (error) => reject(this.#broken(error)));
      response.on("close", () => {
        stop();
        if (response.complete) resolve();
        else reject(this.#broken(new Error("the answer ended too early")));
      });
    });
    return response.statusCode ?? 0;
  }

  /** The answer to GET `path` from its head on; the caller reads or destroys the rest. */
  async open(path: string, deadline: Deadline): Promise<http.IncomingMessage> {
    try {
      return await this.#send(path, deadline);
    } catch (error) {
      // A kept connection may have been closed by the server in the moment in which it was used again.
      if (!(error instanceof StaleConnection)) throw error;
      return await this.#send(path, deadline, true);
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  #send(path: string, deadline: Deadline, again = false): Promise<http.IncomingMessage> {
    return new Promise((resolve, reject) => {
      const request = this.#request({
        protocol: this.#base.protocol,
        hostname: this.#base.hostname.replace(/^\[|\]$/g, ""),
        port: this.#base.port,
        path: `${this.#base.pathname.replace(/\/$/, "")}${path}`,
        agent: this.#agent,
        headers: { accept: "*/*" },
      });
      const stop = deadline.whenExpired(() => {
        request.destroy();
        reject(this.#late(deadline));
      });
      request.on("response", (response) => {
        stop();
        resolve(response);
      });
      request.on("error", (error) => {
        stop();
        reject(!again && request.reusedSocket ? new StaleConnection() : this.#broken(error));
      });
      request.end();
    });
  }

  #late(deadline: Deadline): AdminFailure {
    return deadlinePassed(`the master's HTTP interface at ${this.address}`, deadline.ms);
  }

  #broken(error: Error): AdminFailure {
    const code = (error as NodeJS.ErrnoException).code;
    const why = error.message || code || "no reason given";
    return new AdminFailure(CODE.RPC_FAIL, `the master's HTTP interface at ${this.address} failed: ${why}`);
  }
}

class StaleConnection extends Error {}
