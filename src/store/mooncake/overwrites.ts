import type { Sizes } from "../shared/answers.js";
import { CODE } from "../shared/codes.js";
import type { KeyList } from "../shared/keys.js";

/** A call under way, and its keys as text of one character a byte, made when somebody needs them. */
class Call {
  readonly #list: KeyList;
  #keys: string[] | undefined;
  /** Keys that a call of the other kind met. */
  readonly met: Set<string> = new Set();

  constructor(list: KeyList) {
    this.#list = list;
  }

  get keys(): string[] {
    if (this.#keys === undefined) {
      const { bytes, offsets } = this.#list.flat;
      const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
      this.#keys = Array.from({ length: this.#list.length }, (_, i) =>
        all.toString("latin1", offsets[i], offsets[i + 1]),
      );
    }
    return this.#keys;
  }
}

/**
 * Reads and upserts of one store that overlap. Mooncake overwrites an object of the same size where it lies, and tells no
 * reader that is under way: what such a read gets may be some of the old bytes and some of the new ones. Upserts of other
 * clients nobody can see.
 */
export class Overwrites {
  readonly #reads = new Set<Call>();
  readonly #upserts = new Set<Call>();

  /** Runs an upsert: reads of its keys that are under way, or begin meanwhile, are not to be believed. */
  async upsert<T>(keys: KeyList, work: () => Promise<T>): Promise<T> {
    const upsert = new Call(keys);
    for (const read of this.#reads) meet(read, upsert);
    this.#upserts.add(upsert);
    try {
      return await work();
    } finally {
      this.#upserts.delete(upsert);
    }
  }

  /** Runs a read; keys that an upsert met give -707, as those do whose lease ran out: read again. */
  async read<T extends Sizes>(keys: KeyList, work: () => Promise<T>): Promise<T> {
    const read = new Call(keys);
    for (const upsert of this.#upserts) meet(read, upsert);
    this.#reads.add(read);
    let answer: T;
    try {
      answer = await work();
    } finally {
      this.#reads.delete(read);
    }
    return read.met.size === 0 ? answer : disbelieved(read, answer);
  }
}

function meet(read: Call, upsert: Call): void {
  const written = new Set(upsert.keys);
  for (const key of read.keys) if (written.has(key)) read.met.add(key);
}

function disbelieved<T extends Sizes>(read: Call, answer: T): T {
  const reasons = new Map(answer.reasons);
  const codes = answer.codes.slice();
  for (const [index, key] of read.keys.entries()) {
    if (codes[index]! < 0n || !read.met.has(key)) continue;
    codes[index] = BigInt(CODE.LEASE_EXPIRED);
    reasons.set(
      index,
      "an upsert of this store overwrote the object meanwhile, so that its bytes may be a mixture",
    );
  }
  return { ...answer, codes, reasons };
}
