import {
  sidecarCommandCodec,
  sidecarFailureCodec,
  sidecarPingCodec,
  sidecarReplyCodec,
} from "../../../generated/typescript/vllm-0.33/store-codecs.js";
import { sidecarError } from "./failure.js";
import { Heartbeat } from "./heartbeat.js";
import type { ReplyReader } from "./replies.js";
import { type SidecarLaunch, SidecarProcess } from "./sidecar-process.js";

interface Pending {
  /** Bytes of the longest reply that can be true. */
  readonly most: number;
  readonly resolve: (frames: Uint8Array[]) => void;
  readonly reject: (error: Error) => void;
}

/** Bytes of what a message has around a reply, and of the longest reason for a refusal. */
const LONGEST_REFUSAL = 64 << 10;

/**
 * Requests to one sidecar process, as many at a time as the caller likes, and the watch over the process while there are
 * any: one that gives no sign of life is ended.
 */
export class SidecarClient {
  /** Resolves when the process is gone, with the error that its pending requests got. */
  readonly ended: Promise<Error>;
  readonly #process: SidecarProcess;
  readonly #pending = new Map<number, Pending>();
  readonly #heartbeat: Heartbeat;
  readonly #launch: SidecarLaunch;
  #nextRequest = 0;
  /** Whether the bell was rung since a command was alone. */
  #rung = true;
  #failure: Error | undefined;

  constructor(launch: SidecarLaunch) {
    this.#launch = launch;
    this.#process = new SidecarProcess(launch);
    this.#process.onMessage = (frames) => this.#receive(frames);
    this.#process.longestMessage = () => LONGEST_REFUSAL + this.#longestReply();
    this.#heartbeat = new Heartbeat(
      {
        busy: () => this.#pending.size > 0,
        ping: () => this.request([sidecarPingCodec.toBinary({})], 0),
        isStopped: () => this.#process.isStopped(),
        dead: (reason) => this.#process.kill(reason),
      },
      launch.unresponsiveMs,
    );
    this.ended = this.#process.ended.then((how) => this.#end(how));
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** Why the process is gone; undefined while it is there. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /**
   * The frames of the reply, which is believed to have up to `most` bytes.
   *
   * @throws MooncakeKvError `ERR_STORE` when the sidecar refuses the command, or ends before it answers.
   */
  request(command: readonly Uint8Array[], most: number): Promise<Uint8Array[]> {
    if (this.#failure) return Promise.reject(this.#failure);
    const requestId = this.#nextRequest;
    this.#nextRequest = (requestId + 1) >>> 0;
    return new Promise((resolve, reject) => {
      const alone = this.#pending.size === 0;
      if (alone) this.#process.hold(true);
      this.#pending.set(requestId, { resolve, reject, most });
      this.#process.send([sidecarCommandCodec.toBinary({ requestId, alone }), ...command]);
      if (alone) this.#rung = false;
      else if (!this.#rung) {
        this.#rung = true;
        this.#process.ring();
      }
      this.#heartbeat.watch();
    });
  }

  /**
   * A request whose reply is read at once.
   *
   * @throws MooncakeKvError `ERR_STORE` as `request`, and when the reply can't be true: the process is ended then.
   */
  async ask<T>(command: readonly Uint8Array[], reply: ReplyReader<T>): Promise<T> {
    const frames = await this.request(command, reply.most);
    try {
      return reply.read(frames);
    } catch (error) {
      this.#process.kill(`gave a reply that can't be believed: ${(error as Error).message}`);
      throw await this.ended;
    }
  }

  /** Lets something run that may keep the process from giving signs of life, as Mooncake's registration of memory. */
  async patiently<T>(work: () => Promise<T>): Promise<T> {
    const goOn = this.#heartbeat.pause();
    try {
      return await work();
    } finally {
      goOn();
    }
  }

  /** Ends the process at once; its pending requests fail with the reason. */
  kill(reason: string): void {
    this.#process.kill(reason);
  }

  /** Lets the process end by itself, as it does when this one is gone. */
  disconnect(): void {
    this.#process.disconnect();
  }

  #receive([head, ...frames]: Uint8Array[]): void {
    try {
      const { requestId, failed } = sidecarReplyCodec.fromBinary(head ?? new Uint8Array(0));
      const pending = this.#pending.get(requestId);
      if (!pending) throw new Error(`it answers request ${requestId}, which nobody made`);
      this.#pending.delete(requestId);
      if (this.#pending.size === 0) this.#process.hold(false);
      if (failed) pending.reject(this.#refusal(frames));
      else pending.resolve(frames);
    } catch (error) {
      this.#process.kill(`what it sent can't be read: ${(error as Error).message}`);
    }
  }

  #longestReply(): number {
    let longest = 0;
    for (const { most } of this.#pending.values()) longest = Math.max(longest, most);
    return longest;
  }

  #refusal([frame]: Uint8Array[]): Error {
    const { message } = sidecarFailureCodec.fromBinary(frame ?? new Uint8Array(0));
    return sidecarError(Buffer.from(message).toString());
  }

  #end(how: string): Error {
    const process = this.pid === undefined ? `${this.#launch.python}` : `process ${this.pid}`;
    this.#failure = sidecarError(`${process} ${how}`, { pid: this.pid, log: this.#launch.log.tail(5) });
    this.#heartbeat.stop();
    this.#process.hold(false);
    this.#process.disconnect();
    for (const { reject } of this.#pending.values()) reject(this.#failure);
    this.#pending.clear();
    return this.#failure;
  }
}
