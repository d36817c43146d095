import { setTimeout as sleep } from "node:timers/promises";
import { sidecarCloseCodec } from "../../../generated/typescript/vllm-0.33/store-codecs.js";
import { CODE } from "../shared/codes.js";
import type { Deadline } from "../shared/deadline.js";
import { Slots } from "../shared/slots.js";
import {
  type Launched,
  launchSidecar,
  mapInSidecar,
  placeHere,
  SPARE_THREADS,
  unmapInSidecar,
} from "./launch.js";
import { LogBuffer } from "./log-buffer.js";
import type { ResolvedMooncakeOptions } from "./options.js";
import { codesReply, type ReplyReader } from "./replies.js";
import type { SharedMemory } from "./shared-memory.js";

/** Bytes of Mooncake's log that are kept. */
const LOG_BYTES = 256 << 10;

/** Milliseconds that closing may take when the sidecar holds a segment. */
const CLOSE_MS = 5_000;

/** Milliseconds that a new or a closed arena waits for the sidecar; after that it goes on without. */
const MAP_MS = 1_000;

/** Milliseconds between two attempts to start a sidecar that won't. */
const RESTART_PAUSE = 500;

/** A process that lives for fewer milliseconds died young. */
const YOUNG_MS = 2_000;

/** After so many that died young, one after another, the next is started only for a call. */
const YOUNG_DEATHS = 3;

/**
 * Milliseconds after which a command that nobody waits for is stuck. Mooncake's own patience for a frozen master or owner
 * is far shorter in the sidecar.
 */
const STUCK_MS = 30_000;

/** Whose memory a command touches while it runs. */
export type TouchedMemory = "none" | "staging" | "caller";

/** What became of a command. */
export interface Outcome<T> {
  /** The reply; undefined when the deadline came first. */
  readonly reply: T | undefined;
  /** Settles when the sidecar does not work on the command any more. */
  readonly over: Promise<void>;
}

/** A command whose deadline came before it was sent. */
export const UNSENT: Outcome<never> = { reply: undefined, over: Promise.resolve() };

/** One process and what is counted per process. */
interface Running extends Launched {
  readonly slots: Slots;
  /** Commands that outlived their deadline, by when they were sent. */
  readonly abandoned: Map<symbol, number>;
}

/**
 * The sidecar of a store: one process at a time. A process that dies or is stuck is replaced at once, with the same
 * memory; calls that were waiting for it fail with the reason.
 */
export class Sidecar {
  readonly #options: ResolvedMooncakeOptions;
  readonly #memories: () => readonly SharedMemory[];
  readonly #log = new LogBuffer(LOG_BYTES);
  /** Memory that is being mapped, or was. */
  readonly #mapping = new WeakMap<SharedMemory, Promise<void>>();
  #current: Promise<Running>;
  #running: Running | undefined;
  #closed = false;
  #restarts = 0;
  #diedYoung = 0;
  /** Whether `#current` has failed, and the next call has to start another process. */
  #failed = false;
  #failedAt = 0;

  private constructor(options: ResolvedMooncakeOptions, memories: () => readonly SharedMemory[]) {
    this.#options = options;
    this.#memories = memories;
    this.#current = this.#start();
  }

  /**
   * Starts the first process. `memories` gives the memory that every process gets.
   *
   * @throws MooncakeKvError as `launchSidecar`.
   */
  static async open(
    options: ResolvedMooncakeOptions,
    memories: () => readonly SharedMemory[],
  ): Promise<Sidecar> {
    const sidecar = new Sidecar(options, memories);
    await sidecar.#current;
    return sidecar;
  }

  /** host:port by which the cluster knows the latest process; empty when there is none. */
  get hostname(): string {
    return this.#running?.hostname ?? "";
  }

  /** Name and version of Mooncake's package. */
  get version(): string {
    return this.#running?.version ?? "";
  }

  get pid(): number | undefined {
    return this.#running?.client.pid;
  }

  /** How often a process was replaced. */
  get restarts(): number {
    return this.#restarts;
  }

  /** The latest of what Mooncake has logged. */
  log(): string {
    return this.#log.text();
  }

  /**
   * Runs one command.
   *
   * A command that outlives its deadline costs nobody else anything: it goes on in a spare thread of the process. Only when
   * it touches the caller's memory the process is ended before the promise settles, so that nobody reads or writes that
   * memory afterwards.
   *
   * @throws MooncakeKvError `ERR_STORE` when the process refuses the command, ends before it answers, gives a reply that
   * can't be true, or can't be started.
   */
  async command<T>(
    frames: readonly Uint8Array[],
    reply: ReplyReader<T>,
    deadline: Deadline,
    touched: TouchedMemory = "none",
  ): Promise<Outcome<T>> {
    const running = this.#running ?? (await deadline.inTime(this.#available()));
    if (!running || !(running.slots.tryTake() || (await running.slots.take(deadline)))) return UNSENT;
    const command = Symbol();
    const sent = performance.now();
    const answer = running.client.ask(frames, reply);
    const finish = (): void => {
      // An abandoned command has given its slot back already.
      if (!running.abandoned.delete(command)) running.slots.give();
    };
    const over = answer.then(finish, finish);
    const found = await deadline.inTime(answer);
    if (found !== undefined) return { reply: found, over };
    if (touched === "caller") {
      running.client.kill(
        `was ended because a call that uses memory of the caller took more than ${deadline.ms} ms`,
      );
      await over;
    } else this.#abandon(running, command, sent);
    return { reply: undefined, over };
  }

  /** Maps memory in the process that runs now; later ones get it from the start. */
  async share(shared: SharedMemory): Promise<void> {
    const mapping = (async () => {
      const { client } = this.#running ?? (await this.#current);
      await mapInSidecar(client, placeHere(shared));
    })();
    this.#mapping.set(shared, mapping);
    await within(MAP_MS, mapping);
  }

  /** Unmaps memory that is in no call's use. */
  async unshare(shared: SharedMemory): Promise<void> {
    const unmapping = (async () => {
      await this.#mapping.get(shared)?.catch(() => {});
      shared.mapped = false;
      // Without a process there is nothing to unmap, and one that ends unmaps everything.
      if (this.#running) await unmapInSidecar(this.#running.client, shared.number);
    })();
    await within(MAP_MS, unmapping);
  }

  /** Ends the process; what it gave to the cluster is taken back first. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const running = this.#running ?? (await this.#current.catch(() => undefined));
    if (!running) return;
    const { client } = running;
    if (this.#options.globalSegmentSize > 0n) {
      const timer = setTimeout(() => client.kill("took too long to close"), CLOSE_MS);
      const command = [sidecarCloseCodec.toBinary({})];
      await client.patiently(() => client.ask(command, codesReply(1, CODE.OK)).catch(() => {}));
      clearTimeout(timer);
    }
    client.disconnect();
    const timer = setTimeout(() => client.kill("did not end when it was closed"), 1_000);
    await client.ended;
    clearTimeout(timer);
  }

  /** Nobody waits for a command any more: its slot is free for another, as long as the process has spare threads. */
  #abandon(running: Running, command: symbol, sent: number): void {
    if (running.abandoned.size < SPARE_THREADS) {
      running.abandoned.set(command, sent);
      running.slots.give();
      return;
    }
    // All that can be worked on at a time is held up: by a process that is stuck, when that goes on for long.
    const latest = Math.max(...running.abandoned.values());
    if (performance.now() - latest > STUCK_MS)
      running.client.kill(`was ended because all that it does takes more than ${STUCK_MS} ms`);
  }

  /** The process to use: a new one when the last attempt to start one has failed. */
  #available(): Promise<Running> {
    if (this.#failed && !this.#closed) {
      this.#restarts++;
      this.#failed = false;
      const pause = this.#failedAt + RESTART_PAUSE - performance.now();
      this.#current = (pause > 0 ? sleep(pause) : Promise.resolve()).then(() => this.#start());
      this.#current.catch(() => {});
    }
    return this.#current;
  }

  #fail(): void {
    this.#failed = true;
    this.#failedAt = performance.now();
  }

  async #start(): Promise<Running> {
    try {
      const launched = await launchSidecar(this.#options, this.#memories, this.#log);
      const running: Running = {
        ...launched,
        slots: new Slots(this.#options.threads),
        abandoned: new Map(),
      };
      const started = performance.now();
      this.#running = running;
      running.client.ended.then((failure) => {
        this.#running = undefined;
        this.#diedYoung = performance.now() - started < YOUNG_MS ? this.#diedYoung + 1 : 0;
        this.#current = Promise.reject(failure);
        this.#current.catch(() => {});
        this.#fail();
        // Whatever kills them would kill the next: after some the next is for whoever asks.
        if (this.#diedYoung < YOUNG_DEATHS) {
          this.#failedAt = 0;
          this.#available();
        }
      });
      return running;
    } catch (error) {
      this.#fail();
      throw error;
    }
  }
}

/** Waits for work that goes on by itself, but not for long; its failure is that of the process, which is told elsewhere. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const settled = work.then(
    () => {},
    () => {},
  );
  const stop = new AbortController();
  await Promise.race([settled, sleep(ms, undefined, { signal: stop.signal, ref: false }).catch(() => {})]);
  stop.abort();
}
