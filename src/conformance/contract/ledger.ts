import { CODE } from "../../store/shared/codes.js";
import { keyId } from "./keys.js";
import type { Removed, Sweep, Written } from "./observed.js";

/** What our store should hold under a key. */
export interface Held {
  readonly size: number;
  /** SHA-256 of the bytes, where it is known. */
  readonly data: (() => string) | undefined;
}

interface Entry {
  readonly key: Uint8Array;
  ours: Held | undefined;
  /** Whether the recorded store had the key at this point; undefined where nobody knows. */
  recorded: boolean | undefined;
  /** When each lease was granted last, in milliseconds of the scenario. */
  ourLease: number;
  recordedLease: number;
}

/**
 * Keeps what our store holds, and at which keys the recorded one holds something else since one of our improvements: from
 * then on the recording does not say what is right there, but this does.
 */
export class Ledger {
  readonly #leaseTtl: number;
  readonly #entries = new Map<string, Entry>();
  readonly #differing = new Set<string>();
  /** Whether the two stores have ever held different things. */
  hasDiffered = false;

  constructor(leaseTtl: number) {
    this.#leaseTtl = leaseTtl;
  }

  /** Whether the recording does not hold for the key any more. */
  differs(key: Uint8Array): boolean {
    return this.#differing.has(keyId(key));
  }

  /** What our store should hold. */
  held(key: Uint8Array): Held | undefined {
    return this.#entries.get(keyId(key))?.ours;
  }

  /** Notes an object that was written; `recordedCode` is what the recorded store answered, undefined for a crash. */
  wrote(written: Written, recordedCode: number | undefined, improved: boolean, first: boolean): void {
    const entry = this.#entry(written.key);
    const before = entry.ours;
    if (written.code === 0 && written.size > 0 && (written.upsert ? first : !entry.ours))
      entry.ours = { size: written.size, data: written.data };
    if (!improved && recordedCode === written.code) {
      if (recordedCode === 0 && written.size > 0) {
        // An upsert that both stores took makes them alike again; a put only where neither had the key.
        if (written.upsert) this.#differing.delete(keyId(written.key));
        entry.recorded = true;
      }
      return;
    }
    const hadIt = entry.recorded ?? before !== undefined;
    if (recordedCode === 0 && written.size > 0) entry.recorded = true;
    else if (recordedCode === CODE.NO_AVAILABLE_HANDLE && written.upsert) entry.recorded = false;
    else entry.recorded = hadIt;
    if (entry.ours || entry.recorded) this.#differ(written.key);
  }

  /** Notes that a key was looked at: whoever has it grants a lease. */
  read(key: Uint8Array, now: number, recordedFound: boolean | undefined): void {
    const entry = this.#entries.get(keyId(key));
    if (!entry) return;
    if (entry.ours) entry.ourLease = now;
    if (recordedFound ?? entry.recorded ?? true) entry.recordedLease = now;
  }

  /** What removing the key must give where the recording does not hold. */
  removal(key: Uint8Array, force: boolean, now: number): number {
    const entry = this.#entries.get(keyId(key));
    if (!entry?.ours) return CODE.OBJECT_NOT_FOUND;
    return !force && now - entry.ourLease < this.#leaseTtl ? CODE.OBJECT_HAS_LEASE : 0;
  }

  removed({ key, code }: Removed, recordedCode: number | undefined): void {
    const entry = this.#entries.get(keyId(key));
    if (!entry) return;
    if (code === 0 || code === CODE.OBJECT_NOT_FOUND) entry.ours = undefined;
    if (recordedCode === 0 || recordedCode === CODE.OBJECT_NOT_FOUND) entry.recorded = false;
    if (!entry.ours && entry.recorded === false) this.#forget(key);
  }

  /** How many more objects ours removes than the recorded store did. */
  sweepSurplus(sweep: Sweep, now: number): number {
    let surplus = 0;
    for (const id of this.#differing) {
      const entry = this.#entries.get(id)!;
      if (!matches(sweep, entry.key)) continue;
      if (entry.ours && this.#goes(sweep, entry.ourLease, now)) surplus++;
      if (entry.recorded && this.#goes(sweep, entry.recordedLease, now)) surplus--;
    }
    return surplus;
  }

  swept(sweep: Sweep, now: number): void {
    for (const [, entry] of [...this.#entries]) {
      if (!matches(sweep, entry.key)) continue;
      if (this.#goes(sweep, entry.ourLease, now)) entry.ours = undefined;
      if (this.#goes(sweep, entry.recordedLease, now)) entry.recorded = false;
      if (!entry.ours && !entry.recorded) this.#forget(entry.key);
    }
  }

  #goes({ force }: Sweep, lease: number, now: number): boolean {
    return force || now - lease >= this.#leaseTtl;
  }

  #differ(key: Uint8Array): void {
    this.#differing.add(keyId(key));
    this.hasDiffered = true;
  }

  #forget(key: Uint8Array): void {
    this.#entries.delete(keyId(key));
    this.#differing.delete(keyId(key));
  }

  #entry(key: Uint8Array): Entry {
    const id = keyId(key);
    let entry = this.#entries.get(id);
    if (!entry) {
      entry = {
        key,
        ours: undefined,
        recorded: undefined,
        ourLease: Number.NEGATIVE_INFINITY,
        recordedLease: Number.NEGATIVE_INFINITY,
      };
      this.#entries.set(id, entry);
    }
    return entry;
  }
}

function matches({ pattern }: Sweep, key: Uint8Array): boolean {
  if (pattern === undefined) return true;
  try {
    return new RegExp(pattern).test(Buffer.from(key).toString());
  } catch {
    return false;
  }
}
