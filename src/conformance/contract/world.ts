import type { KvStore } from "../../store/kv-store.js";
import type { PutOptions } from "../../store/shared/call-options.js";
import type { ContractScenario, ContractSetup } from "./scenario.js";

/**
 * A backend under the contract suite: it opens a fresh world for every scenario.
 *
 * A world answers with `KvStore`s. The suite itself says what a call of Mooncake's Python client is in terms of a
 * `KvStore` (`python-calls.ts`), so a backend only brings stores, memory and whatever it can do besides.
 */
export interface ContractBackend {
  /** For reports. */
  readonly name: string;
  /**
   * Why this backend can't run a scenario, as a phrase ("it kills the master"); undefined when it can. It must decide
   * by rule, from the setup and the ops, never by the id. The report lists such scenarios with the reason.
   */
  unsupported(scenario: ContractScenario): string | undefined;
  /** Opens a world. Owner processes, if it has them, are up when the promise resolves. */
  open(setup: ContractSetup): Promise<ContractWorld>;
}

/** One cluster with its clients, for one scenario. Disposing of it ends all of it. */
export interface ContractWorld extends AsyncDisposable {
  /**
   * Starts client `name` (see `clientSetup` for its settings): its memory is there, and unless it is `manual` it is
   * set up and its arena registered. For a name that is in use: starts it anew, in a fresh process where the backend
   * has processes; what the old one had open is gone without an orderly end.
   */
  startClient(name: string): Promise<ContractClient>;
  /** Lets `ms` milliseconds pass, really or by steering the clock. */
  sleep(ms: number): Promise<void>;
  /**
   * Told before a step moves `bytes` bytes. A world whose clock is steered lets the time pass that the transfer would
   * take; others do nothing.
   */
  beforeTransfer?(bytes: number): Promise<void>;
  /** Bytes used and capacity of each segment: `/get_segments_detail`. */
  segments(): Promise<{ readonly used: number[]; readonly capacity: number[] }>;
  /** GET on the master's admin port; absent where there is none. */
  http?(path: string): Promise<{ readonly status: number; readonly body: string }>;
  /** Absent where there are no processes. */
  readonly processes?: ContractProcesses | undefined;
}

/** Doing harm to the processes of a world. What a world can't do is absent. */
export interface ContractProcesses {
  /** SIGKILL; its later calls need `startClient` first. */
  killClient?(name: string): Promise<void>;
  /** SIGSTOP. */
  stopClient?(name: string): Promise<void>;
  /** SIGCONT. */
  continueClient?(name: string): Promise<void>;
  killMaster?(signal: "SIGKILL" | "SIGTERM"): Promise<void>;
  /** On the same port, empty. */
  startMaster?(): Promise<void>;
  stopMaster?(): Promise<void>;
  continueMaster?(): Promise<void>;
}

/** A client of the world. */
export interface ContractClient {
  /** The store once it is set up and until it is closed, else undefined. */
  readonly store: KvStore | undefined;
  /** The arena, whose offsets the steps speak of. It outlives `close`. */
  readonly arena: ContractBuffer;
  /** `local_buffer_size` as it is set up with: `put` and `get` of more bytes fail with -600. */
  readonly localBufferSize: number;
  /** Anonymous memory that is not registered. */
  allocate(bytes: number): Promise<ContractBuffer>;
  /** `register_buffer`; needs an open store. */
  register(address: bigint, bytes: number): Promise<number>;
  /** `unregister_buffer`; needs an open store. */
  unregister(address: bigint): Promise<number>;
  /** `setup` with some arguments overridden (see `SetupArguments`). */
  setup(overrides: SetupArguments): Promise<number>;
  /** `close`: always 0. */
  close(): Promise<number>;
  /** Replaces the store object by a fresh one that is not set up: the `new_store` step. */
  renew(): Promise<void>;
  /** `health_check`. */
  health(): Promise<number>;
  /** `get_hostname`; empty when not set up. */
  hostname(): string;
  /** The split put; absent where the backend has none. */
  readonly sessions?: ContractPutSessions | undefined;
}

/** Memory of a client. */
export interface ContractBuffer {
  readonly address: bigint;
  readonly bytes: Uint8Array;
  /** Unmaps it, registered or not. */
  free(): Promise<void>;
}

/** What a `setup_call` step may override. */
export interface SetupArguments {
  readonly host?: string | undefined;
  readonly meta?: string | undefined;
  readonly segment?: number | undefined;
  readonly local?: number | undefined;
  readonly proto?: string | undefined;
  readonly master?: string | undefined;
}

/** A put cut into its parts. Codes one a key; mirrors `batch_put_session_start` and so on. */
export interface ContractPutSessions {
  /** 0; -705 for an existing key; -600 for a session that this client has open already; -200. */
  start(keys: readonly Uint8Array[], sizes: readonly number[], options: PutOptions): Promise<number[]>;
  /** Copies ranges [address, size] of key i to the offsets `targets[i]` of its object: the bytes written, or a code. */
  write(
    keys: readonly Uint8Array[],
    ranges: readonly (readonly (readonly [address: bigint, size: number])[])[],
    targets: readonly (readonly number[])[],
  ): Promise<number[]>;
  /** 0; -600 without a session; -601 when somebody took the key over. */
  end(keys: readonly Uint8Array[]): Promise<number[]>;
  /** 0; -600 without a session; -601. */
  revoke(keys: readonly Uint8Array[]): Promise<number[]>;
}
