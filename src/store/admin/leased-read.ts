import { describe } from "../../errors.js";
import type { AdminClient } from "./admin-client.js";
import type { MemoryReplica } from "./answers.js";
import type { ByteSink } from "./data-connection.js";
import type { DataPlane } from "./data-plane.js";
import type { Deadline } from "./deadline.js";
import { type Endpoint, parseEndpoint } from "./endpoint.js";
import { AdminFailure, adminFailure } from "./failure.js";

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
      if (failure.storeCode !== -800) throw failure;
    } finally {
      lease.release();
    }
  }
  throw failure ?? new AdminFailure(-800, "no replica could be read");
}

function readable(replicas: readonly MemoryReplica[]): [Readable, ...Readable[]] {
  if (replicas.length === 0)
    throw new AdminFailure(
      -1012,
      "the object has no replica in memory; only memory that is served over TCP can be read",
    );
  const candidates: Readable[] = [];
  for (const replica of replicas) {
    const owner = parseEndpoint(replica.endpoint);
    if (replica.protocol === "tcp" && owner !== undefined && replica.size > 0n)
      candidates.push({ replica, owner });
  }
  const [first, ...others] = candidates;
  if (first !== undefined) return [first, ...others];
  const { protocol, endpoint } = replicas[0]!;
  throw new AdminFailure(
    -1012,
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
  #renewal: NodeJS.Timeout | undefined;

  constructor(context: ReadContext, key: Uint8Array, deadline: Deadline) {
    this.#context = context;
    this.#key = key;
    this.#deadline = deadline;
  }

  /** Asks the master for the replicas, which grants the lease. */
  async replicas(): Promise<MemoryReplica[]> {
    // The lease starts no earlier than the question is sent.
    const asked = performance.now();
    const replicas = await this.#context.client.queryKey(this.#key, this.#deadline);
    this.#granted = asked;
    return replicas;
  }

  /** Renews the lease for as long as `replica` is read. */
  keep(replica: MemoryReplica): void {
    this.#renewal = setTimeout(() => void this.#renew(replica), this.#context.leaseMs / 2);
  }

  release(): void {
    clearTimeout(this.#renewal);
    this.#renewal = undefined;
  }

  /** @throws AdminFailure -707 when the bytes may be those of another object. */
  check(): void {
    if (this.#lost || this.#elapsed())
      throw new AdminFailure(
        -707,
        `the lease of ${this.#context.leaseMs} ms ran out before the read ended; read again`,
      );
  }

  #elapsed(): boolean {
    return performance.now() - this.#granted > this.#context.leaseMs;
  }

  async #renew(replica: MemoryReplica): Promise<void> {
    const before = this.#granted;
    let replicas: MemoryReplica[];
    try {
      replicas = await this.replicas();
    } catch (error) {
      // Gone from the master: the bytes are nobody's now. A master that can't be asked decides nothing yet.
      if (adminFailure(error).storeCode > -900) this.#lost = true;
      return;
    }
    // An answer that came too late may have granted a lease on what replaced the object.
    if (performance.now() - before > this.#context.leaseMs) this.#lost = true;
    if (!replicas.some((now) => sameMemory(now, replica))) this.#lost = true;
    if (!this.#lost && this.#renewal !== undefined) this.keep(replica);
  }
}

function sameMemory(a: MemoryReplica, b: MemoryReplica): boolean {
  return a.address === b.address && a.size === b.size && a.endpoint === b.endpoint;
}
