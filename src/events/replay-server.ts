import { setImmediate } from "node:timers/promises";
import type { Router } from "zeromq";
import { loadZeroMq } from "../lookup/zeromq.js";
import { frameSizes } from "./event-frames.js";
import { type EventLog, isReplayRequest } from "./event-log.js";

/** How many replay requests there were that came to nothing. */
export interface ReplayServerCounters {
  /** Requests that made no sense. */
  malformedReplays: number;
  /** Requests of askers beyond the most that are answered at a time. */
  refusedReplays: number;
  /** Replays that ended early: whoever asked was gone, or did not read. */
  abandonedReplays: number;
}

/** Messages that wait for one asker; beyond it nothing is sent until it has read. */
const HIGH_WATER_MARK = 1_000;

/** Bytes of a frame of a replay request: there is an identity, an empty one, and a number. */
const LONGEST_REQUEST_FRAME = 1_024;

/** How much askers may take. */
export interface ReplayServerLimits {
  /** Askers that are answered at a time. */
  readonly askers: number;
  /** Milliseconds after which an asker that reads nothing is given up. */
  readonly stallMs: number;
}

const LIMITS: ReplayServerLimits = { askers: 1_000, stallMs: 5_000 };

/** Batches of a replay between which others get their turn. */
const STRIDE = 64;

/** Milliseconds before askers that have no room are tried again. */
const FULL_PAUSE = 5;

/** Milliseconds before the socket is asked again after an error: at first, and at most. */
const FIRST_PAUSE = 10;
const LONGEST_PAUSE = 5_000;

/** Somebody who has asked for a replay, and how far it is. */
interface Asker {
  readonly identity: Uint8Array;
  replay: Generator<Uint8Array[]>;
  /** Taken from the replay and not sent yet. */
  next: Uint8Array[] | undefined;
  /** The last request that came meanwhile. */
  again: Uint8Array | undefined;
  /** When something was sent last. */
  moved: number;
}

/**
 * Answers replay requests on a ROUTER socket: all askers by turns, so that one who asks for much, or who never reads, takes
 * nothing from the others. Each has one replay under way, and at most 1,000 messages in memory.
 */
export class ReplayServer {
  readonly #router: Router;
  readonly #endpoint: string;
  readonly #log: EventLog;
  readonly #report: (message: string) => void;
  readonly #limits: ReplayServerLimits;
  readonly #askers = new Map<string, Asker>();
  readonly #ended: Promise<unknown>;
  #closed = false;
  /** Ends what is waited for: of the sender, and of the receiver. */
  #asked: () => void = () => {};
  #resumed: () => void = () => {};
  readonly counters: ReplayServerCounters = { malformedReplays: 0, refusedReplays: 0, abandonedReplays: 0 };

  private constructor(
    router: Router,
    log: EventLog,
    report: (message: string) => void,
    limits: ReplayServerLimits,
  ) {
    this.#endpoint = router.lastEndpoint!;
    this.#limits = limits;
    this.#router = router;
    this.#log = log;
    this.#report = report;
    this.#ended = Promise.all([this.#receive(), this.#send()]);
  }

  /**
   * Binds an endpoint, and answers whoever asks there.
   *
   * @param report is told what goes wrong.
   * @throws Error of zeromq for an endpoint that can't be bound.
   */
  static async bind(
    endpoint: string,
    log: EventLog,
    report: (message: string) => void,
    limits: ReplayServerLimits = LIMITS,
  ): Promise<ReplayServer> {
    const { Router } = await loadZeroMq();
    // A message for which there is no room, or nobody, then fails at once instead of being dropped.
    const router = new Router({
      linger: 0,
      mandatory: true,
      sendTimeout: 0,
      sendHighWaterMark: HIGH_WATER_MARK,
      maxMessageSize: LONGEST_REQUEST_FRAME,
    });
    try {
      await router.bind(endpoint);
    } catch (error) {
      router.close();
      throw error;
    }
    return new ReplayServer(router, log, report, limits);
  }

  /** Where it was bound, with the port that the system chose. */
  get endpoint(): string {
    return this.#endpoint;
  }

  /** Ends all replays and closes the socket. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#router.close();
    this.#asked();
    this.#resumed();
    await this.#ended;
  }

  async #receive(): Promise<void> {
    let pause = FIRST_PAUSE;
    while (!this.#closed) {
      try {
        this.#request(await this.#router.receive());
        pause = FIRST_PAUSE;
      } catch (error) {
        if (this.#closed) return;
        this.#report(`requests can't be received: ${(error as Error).message}`);
        await this.#pause(pause, (resume) => {
          this.#resumed = resume;
        });
        pause = Math.min(2 * pause, LONGEST_PAUSE);
      }
    }
  }

  #request(frames: readonly Uint8Array[]): void {
    const [identity, , start] = frames;
    if (frames.length !== 3 || !isReplayRequest(start!)) {
      this.counters.malformedReplays++;
      this.#report(
        `a replay request of ${frameSizes(frames)} makes no sense; an identity, an empty frame and a number of 8 bytes are right`,
      );
      return;
    }
    const name = Buffer.from(identity!).toString("hex");
    const asker = this.#askers.get(name);
    if (asker !== undefined) {
      asker.again = start!;
      return;
    }
    if (this.#askers.size >= this.#limits.askers) {
      this.counters.refusedReplays++;
      this.#report(`a replay was refused: ${this.#limits.askers} are under way`);
      return;
    }
    const replay = this.#log.replay(start!);
    this.#askers.set(name, {
      identity: identity!,
      replay,
      next: undefined,
      again: undefined,
      moved: performance.now(),
    });
    this.#asked();
  }

  async #send(): Promise<void> {
    while (!this.#closed) {
      let moved = false;
      for (const [name, asker] of this.#askers) {
        moved = (await this.#answer(name, asker)) || moved;
        if (this.#closed) return;
      }
      if (moved) await setImmediate();
      else
        await this.#pause(this.#askers.size > 0 ? FULL_PAUSE : undefined, (resume) => {
          this.#asked = resume;
        });
    }
  }

  /** Sends an asker the next messages. Returns whether there was room for any. */
  async #answer(name: string, asker: Asker): Promise<boolean> {
    for (let sent = 0; sent < STRIDE; sent++) {
      asker.next ??= asker.replay.next().value as Uint8Array[] | undefined;
      if (asker.next === undefined) {
        this.#done(name, asker);
        return true;
      }
      try {
        await this.#router.send([asker.identity, ...asker.next]);
      } catch (error) {
        if (this.#closed) return false;
        const full = (error as NodeJS.ErrnoException).code === "EAGAIN";
        if (sent > 0) asker.moved = performance.now();
        const { stallMs } = this.#limits;
        if (full && performance.now() - asker.moved < stallMs) return sent > 0;
        this.#askers.delete(name);
        this.counters.abandonedReplays++;
        const why = full ? `the asker has read nothing for ${stallMs} ms` : (error as Error).message;
        this.#report(`a replay ended early: ${why}`);
        return true;
      }
      asker.next = undefined;
    }
    asker.moved = performance.now();
    return true;
  }

  #done(name: string, asker: Asker): void {
    if (asker.again === undefined) {
      this.#askers.delete(name);
      return;
    }
    asker.replay = this.#log.replay(asker.again);
    asker.again = undefined;
  }

  /** Waits, for ever if there is no time, but not beyond `close`. */
  async #pause(ms: number | undefined, resumable: (resume: () => void) => void): Promise<void> {
    if (this.#closed) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      if (ms !== undefined) timer = setTimeout(resolve, ms);
      resumable(resolve);
    });
    clearTimeout(timer);
  }
}
