import { fstatSync } from "node:fs";
import {
  sidecarCloseCodec,
  sidecarCodesCodec,
  sidecarRegisterCodec,
  sidecarSetupCodec,
  sidecarSetupReplyCodec,
  sidecarUnregisterCodec,
} from "../../../generated/typescript/vllm-0.33/store-codecs.js";
import type { Deadline } from "../admin/deadline.js";
import { storeCode } from "../codes.js";
import { int32 } from "./columns.js";
import { sidecarError } from "./failure.js";
import { LogBuffer } from "./log-buffer.js";
import { parseMasterAddress, probeMaster } from "./master-address.js";
import type { ResolvedMooncakeOptions } from "./options.js";
import type { Region } from "./regions.js";
import { SidecarClient } from "./sidecar-client.js";
import { INHERITED } from "./sidecar-process.js";
import { Slots } from "./slots.js";

/** Bytes of Mooncake's log that are kept. */
const LOG_BYTES = 256 << 10;

/** Milliseconds that closing may take when the sidecar holds a segment. */
const CLOSE_MS = 5_000;

/** Milliseconds between two attempts to start a sidecar that won't. */
const RESTART_PAUSE = 500;

/** A process that lives for fewer milliseconds died young. */
const YOUNG_MS = 2_000;

/** After so many that died young, one after another, the next is started only for a call. */
const YOUNG_DEATHS = 3;

/** Whose memory a command touches while it runs. */
export type TouchedMemory = "none" | "staging" | "caller";

/** What became of a command. */
export interface Outcome {
  /** The frames of the reply; undefined when the deadline came first. */
  readonly reply: Uint8Array[] | undefined;
  /** Settles when the sidecar does not work on the command any more. */
  readonly over: Promise<void>;
}

/** One process and what is counted per process. */
interface Running {
  readonly client: SidecarClient;
  readonly slots: Slots;
  readonly hostname: string;
  readonly version: string;
  /** Commands that outlived their deadline. */
  overdue: number;
}

/**
 * The sidecar of a store: one process at a time. A process that dies or is stuck is replaced at once, with the same
 * memory; calls that were waiting for it fail with the reason.
 */
export class Sidecar {
  readonly #options: ResolvedMooncakeOptions;
  readonly #regions: () => readonly Region[];
  readonly #log = new LogBuffer(LOG_BYTES);
  #current: Promise<Running>;
  #running: Running | undefined;
  #closed = false;
  #restarts = 0;
  #diedYoung = 0;
  #failedAt = Number.NEGATIVE_INFINITY;

  private constructor(options: ResolvedMooncakeOptions, regions: () => readonly Region[]) {
    this.#options = options;
    this.#regions = regions;
    this.#current = this.#start();
  }

  /**
   * Starts the first process. `regions` gives the memory that every process gets.
   *
   * @throws MooncakeKvError `ERR_STORE` when it can't be set up in time; the master's address is in the text.
   */
  static async open(options: ResolvedMooncakeOptions, regions: () => readonly Region[]): Promise<Sidecar> {
    const sidecar = new Sidecar(options, regions);
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
   * When a command that touches the caller's memory outlives its deadline, the process is ended before the promise
   * settles: nobody reads or writes that memory afterwards.
   *
   * @throws MooncakeKvError `ERR_STORE` when the process refuses the command, ends before it answers, or can't be
   * started.
   */
  async command(
    frames: readonly Uint8Array[],
    deadline: Deadline,
    touched: TouchedMemory = "none",
  ): Promise<Outcome> {
    const running = this.#running ?? (await inTime(this.#available(), deadline));
    if (!running || !(running.slots.tryTake() || (await running.slots.take(deadline)))) return UNSENT;
    const reply = running.client.request(frames);
    const finish = (): void => running.slots.give();
    const over = reply.then(finish, finish);
    const found = await inTime(reply, deadline);
    if (!found) await this.#outlived(running, deadline, touched, over);
    return { reply: found, over };
  }

  /** Maps memory in the process that runs now; later ones get it from the start. */
  async share(region: Region, deadline: Deadline): Promise<void> {
    const running = this.#running ?? (await inTime(this.#available(), deadline));
    if (!running) return;
    const { fd } = region.arena!;
    await register(running.client, { region, owner: process.pid, descriptor: fd, inode: inodeOf(fd) });
  }

  /** Unmaps memory that is in no call's use. */
  async unshare(region: Region): Promise<void> {
    if (!region.shared) return;
    region.shared = false;
    // Without a process there is nothing to unmap, and one that ends unmaps everything.
    const request = this.#running?.client.request(sidecarUnregisterCodec.toBinary({ region: region.id }));
    await request?.catch(() => {});
  }

  /** Ends the process; what it gave to the cluster is taken back first. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const running = this.#running ?? (await this.#current.catch(() => undefined));
    if (!running) return;
    if (this.#options.globalSegmentSize > 0n) {
      const timer = setTimeout(() => running.client.kill("took too long to close"), CLOSE_MS);
      await running.client.patiently(() =>
        running.client.request([sidecarCloseCodec.toBinary({})]).catch(() => {}),
      );
      clearTimeout(timer);
    }
    running.client.disconnect();
    const timer = setTimeout(() => running.client.kill("did not end when it was closed"), 1_000);
    await running.client.ended;
    clearTimeout(timer);
  }

  /** A command that has no answer at its deadline. */
  async #outlived(
    running: Running,
    deadline: Deadline,
    touched: TouchedMemory,
    over: Promise<void>,
  ): Promise<void> {
    running.overdue++;
    over.then(() => running.overdue--);
    if (touched === "caller")
      running.client.kill(
        `was ended because a call that uses memory of the caller took more than ${deadline.ms} ms`,
      );
    else if (running.overdue >= running.slots.count)
      running.client.kill(`was ended because ${running.overdue} calls took longer than they may`);
    else return;
    await over;
  }

  /** The process to use: a new one when the last attempt to start one failed some time ago. */
  #available(): Promise<Running> {
    if (this.#failedAt > 0 && performance.now() - this.#failedAt > RESTART_PAUSE) this.#restart();
    return this.#current;
  }

  #restart(): void {
    if (this.#closed) return;
    this.#restarts++;
    this.#failedAt = Number.NEGATIVE_INFINITY;
    this.#current = this.#start();
    this.#current.catch(() => {});
  }

  /** Starts no process for now: whatever kills them would kill the next. */
  #giveUp(failure: Error): void {
    this.#failedAt = performance.now();
    this.#current = Promise.reject(failure);
    this.#current.catch(() => {});
  }

  async #start(): Promise<Running> {
    try {
      const running = await this.#launch();
      const started = performance.now();
      this.#running = running;
      running.client.ended.then((failure) => {
        this.#running = undefined;
        this.#diedYoung = performance.now() - started < YOUNG_MS ? this.#diedYoung + 1 : 0;
        if (this.#diedYoung < YOUNG_DEATHS) this.#restart();
        else this.#giveUp(failure);
      });
      return running;
    } catch (error) {
      this.#failedAt = performance.now();
      throw error;
    }
  }

  async #launch(): Promise<Running> {
    const { masterServerAddress, openDeadlineMs, localHostname } = this.#options;
    const started = performance.now();
    const address = parseMasterAddress(masterServerAddress);
    const ourAddress = address ? await probeMaster(address, Math.min(2_000, openDeadlineMs)) : "127.0.0.1";
    const inherited = this.#regions()
      .filter((region) => region.arena !== undefined && region.arena.fd >= 0)
      .map((region, index) => {
        const { fd } = region.arena!;
        return { region, fd, owner: 0, descriptor: INHERITED + index, inode: inodeOf(fd) };
      });
    const client = new SidecarClient({
      python: this.#options.python,
      threads: this.#options.threads,
      environment: this.#options.environment,
      descriptors: inherited.map(({ fd }) => fd),
      log: this.#log,
    });
    const left = openDeadlineMs - (performance.now() - started);
    const timer = setTimeout(
      () =>
        client.kill(
          `could not reach the Mooncake master at ${masterServerAddress} within ${openDeadlineMs} ms`,
        ),
      left,
    );
    try {
      return await client.patiently(async () => {
        const { hostname, version } = await this.#setUp(client, localHostname ?? ourAddress);
        for (const region of this.#regions()) region.shared = false;
        for (const place of inherited) await register(client, place);
        if (!this.#regions()[0]!.shared) throw sidecarError("it can't map the staging memory");
        // What was unregistered meanwhile found no process to tell.
        for (const { region } of inherited)
          if (!this.#regions().includes(region))
            await client.request(sidecarUnregisterCodec.toBinary({ region: region.id }));
        return { client, slots: new Slots(this.#options.threads), hostname, version, overdue: 0 };
      });
    } catch (error) {
      client.kill("could not be set up");
      await client.ended;
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  async #setUp(client: SidecarClient, hostname: string): Promise<{ hostname: string; version: string }> {
    const options = this.#options;
    const text = (value: string): Uint8Array => Buffer.from(value);
    const reply = sidecarSetupReplyCodec.fromBinary(
      await client.request(
        sidecarSetupCodec.toBinary({
          globalSegmentSize: options.globalSegmentSize,
          localBufferSize: options.localBufferSize,
          localHostname: text(hostname),
          metadataServer: text(options.metadataServer),
          protocol: text(options.protocol),
          rdmaDevices: text(options.deviceName),
          masterServerAddress: text(options.masterServerAddress),
          tenantId: text(options.tenantId),
        }),
      ),
    );
    const code = int32(reply.codes)[0] ?? -1;
    if (code === 0)
      return {
        hostname: Buffer.from(reply.hostname).toString(),
        version: Buffer.from(reply.version).toString(),
      };
    const { name, meaning } = storeCode(code);
    throw sidecarError(
      `setup against the Mooncake master at ${options.masterServerAddress} failed with ${name} (${code}, ${meaning})`,
      { code, master: options.masterServerAddress, log: this.#log.tail(5) },
    );
  }
}

/** A command whose deadline came before it was sent. */
export const UNSENT: Outcome = { reply: undefined, over: Promise.resolve() };

/** Where the sidecar finds the memory of a region. */
interface Place {
  readonly region: Region;
  /** The process that has the descriptor open; 0 for one that the sidecar inherited. */
  readonly owner: number;
  readonly descriptor: number;
  readonly inode: bigint;
}

function inodeOf(descriptor: number): bigint {
  return fstatSync(descriptor, { bigint: true }).ino;
}

/** Maps and registers a region. One that the process refuses stays unshared: its bytes go through staging. */
async function register(client: SidecarClient, { region, ...place }: Place): Promise<void> {
  const command = sidecarRegisterCodec.toBinary({ region: region.id, size: region.size, ...place });
  try {
    const [frame] = await client.patiently(() => client.request(command));
    region.shared = int32(sidecarCodesCodec.fromBinary(frame!).codes)[0] === 0;
  } catch (error) {
    if (client.failure) throw error;
  }
}

/** What a promise gives, or undefined when the deadline comes first. */
function inTime<T>(promise: Promise<T>, deadline: Deadline): Promise<T | undefined> {
  if (deadline.expired) {
    promise.catch(() => {});
    return Promise.resolve(undefined);
  }
  return new Promise((resolve, reject) => {
    const forget = deadline.whenExpired(() => resolve(undefined));
    promise.then(resolve, reject).finally(forget);
  });
}
