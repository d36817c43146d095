import { describe } from "../../errors.js";
import { CODE } from "../shared/codes.js";
import { Deadline } from "../shared/deadline.js";
import type { AdminClient } from "./admin-client.js";
import type { ByteSink } from "./data-connection.js";
import type { DataPlane } from "./data-plane.js";
import { type Endpoint, parseEndpoint } from "./endpoint.js";
import { AdminFailure, adminFailure } from "./failure.js";
import type { MemoryReplica } from "./key-answers.js";

/** Where the bytes of a value go. */
export interface Destination {
  readonly sink: ByteSink;
  /** Called when the bytes come from the start again. */
  restart(): void;
}

/** What a read needs. */
export interface ReadContext {
  readonly client: AdminClient;
  readonly plane: DataPlane;
  /** The lease that `/query_key` grants, in milliseconds. */
  readonly leaseMs: number;
}

/** A replica that can be read. */
interface Readable {
  readonly replica: MemoryReplica;
  readonly owner: Endpoint;
}

/**
 * Reads one object under a lease: asks the master where it lies, and its owner for the bytes. `accept` learns the size
 * and says where the bytes go; when it gives nothing, no byte is read.
 *
 * @throws AdminFailure with the code of the key: what the master answers, -1012 for an object that no plain TCP replica
 * in memory has, -707 when the lease ran out, -800, -900, -901.
 */
export async function readUnderLease(
  context: ReadContext,
  key: Uint8Array,
  accept: (size: bigint) => Destination | undefined,
  deadline: Deadline,
): Promise<void> {
  const lease = new Lease(context, key, deadline);
  const candidates = readable(await lease.replicas());
  const { size } = candidates[0]!.replica;
  const destination = accept(size);
  if (destination === undefined) return;
  let failure: AdminFailure | undefined;
  for (const { replica, owner } of candidates) {
    if (replica.size !== size) continue;
    if (failure !== undefined) destination.restart();
    lease.keep(replica);
    try {
      const { sink } = destination;
      await context.plane.read(owner, replica.address, size, sink, () => destination.restart(), deadline);
      lease.check();
      return;
    } catch (error) {
      failure = adminFailure(error);
      // Only an owner that fails makes another one worth trying.
      if (failure.storeCode !== CODE.TRANSFER_FAIL) throw failure;
    } finally {
      await lease.release();
    }
  }
  throw failure ?? new AdminFailure(CODE.TRANSFER_FAIL, "no replica could be read");
}

function readable(replicas: readonly MemoryReplica[]): [Readable, ...Readable[]] {
  if (replicas.length === 0)
    throw new AdminFailure(
      CODE.NOT_SUPPORTED,
      "the object has no replica in memory; only memory that is served over TCP can be read",
    );
  const candidates: Readable[] = [];
  for (const replica of replicas) {
    const owner = parseEndpoint(replica.endpoint);
    if (replica.protocol === "tcp" && owner !== undefined) candidates.push({ replica, owner });
  }
  const [first, ...others] = candidates;
  if (first !== undefined) return [first, ...others];
  const { protocol, endpoint } = replicas[0]!;
  throw new AdminFailure(
    CODE.NOT_SUPPORTED,
    protocol === "tcp"
      ? `the replica's endpoint ${describe(endpoint)} is no host:port that can be asked for its bytes`
      : `the replica is served with protocol ${describe(protocol)}; only plain TCP can be read`,
  );
}

/** The lease of one object: granted by every query, renewed while bytes stream. */
class Lease {
  readonly #context: ReadContext;
  readonly #key: Uint8Array;
  readonly #deadline: Deadline;
  #granted = 0;
  #lost = false;
  #kept: { readonly until: AbortController; timer: NodeJS.Timeout; renewal: Promise<void> } | undefined;

  constructor(context: ReadContext, key: Uint8Array, deadline: Deadline) {
    this.#context = context;
    this.#key = key;
    this.#deadline = deadline;
  }

  /** Asks the master for the replicas, which grants the lease. */
  async replicas(deadline: Deadline = this.#deadline): Promise<MemoryReplica[]> {
    // The lease starts no earlier than the question is sent.
    const asked = performance.now();
    const replicas = await this.#context.client.queryKey(this.#key, deadline);
    this.#granted = asked;
    return replicas;
  }

  /** Renews the lease for as long as `replica` is read. */
  keep(replica: MemoryReplica): void {
    const until = new AbortController();
    const renew = (): void => {
      kept.renewal = this.#renew(replica, until.signal).then((goOn) => {
        if (goOn && !until.signal.aborted) kept.timer = setTimeout(renew, this.#context.leaseMs / 2);
      });
    };
    const kept = {
      until,
      timer: setTimeout(renew, this.#context.leaseMs / 2),
      renewal: Promise.resolve(),
    };
    this.#kept = kept;
  }

  /** Ends `keep`; a renewal that is under way is nobody's business any more, and is given up. */
  async release(): Promise<void> {
    const kept = this.#kept;
    if (kept === undefined) return;
    this.#kept = undefined;
    clearTimeout(kept.timer);
    kept.until.abort();
    await kept.renewal;
  }

  /** @throws AdminFailure -707 when the bytes may be those of another object. */
  check(): void {
    if (this.#lost || this.#elapsed())
      throw new AdminFailure(
        CODE.LEASE_EXPIRED,
        `the lease of ${this.#context.leaseMs} ms ran out before the read ended; read again`,
      );
  }

  #elapsed(): boolean {
    return performance.now() - this.#granted > this.#context.leaseMs;
  }

  /** Whether the lease is worth another renewal. */
  async #renew(replica: MemoryReplica, signal: AbortSignal): Promise<boolean> {
    const before = this.#granted;
    // A renewal is of no use once the lease would have run out.
    const deadline = new Deadline(this.#context.leaseMs, signal);
    let replicas: MemoryReplica[];
    try {
      replicas = await this.replicas(deadline);
    } catch (error) {
      // Gone from the master: the bytes are nobody's now. A master that can't be asked decides nothing yet.
      if (!signal.aborted && adminFailure(error).storeCode > CODE.RPC_FAIL) this.#lost = true;
      return false;
    } finally {
      deadline.end();
    }
    // An answer that came too late may have granted a lease on what replaced the object.
    if (performance.now() - before > this.#context.leaseMs) this.#lost = true;
    if (!replicas.some((now) => sameMemory(now, replica))) this.#lost = true;
    return !this.#lost;
  }
}

function sameMemory(a: MemoryReplica, b: MemoryReplica): boolean {
  return a.address === b.address && a.size === b.size && a.endpoint === b.endpoint;
}
