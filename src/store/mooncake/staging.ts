import type { Deadline } from "../shared/deadline.js";

/** A piece of the staging memory. */
export interface StagingBlock {
  /** From the start of the staging memory, in bytes. */
  readonly offset: number;
  readonly size: number;
}

interface Waiter {
  readonly size: number;
  readonly give: (block: StagingBlock | undefined) => void;
}

/** Blocks start at multiples of this many bytes. */
const ALIGNMENT = 4096;

/**
 * Hands out pieces of the staging memory. Who comes first is served first: a large request is not overtaken for ever
 * by small ones. That waiting is the back-pressure of calls that move bytes.
 */
export class Staging {
  readonly size: number;
  /** Free pieces in the order of their offsets; no two touch. */
  #free: StagingBlock[];
  #waiting: Waiter[] = [];

  constructor(size: number) {
    this.size = size;
    this.#free = [{ offset: 0, size }];
  }

  /** A block of at least `bytes` (no more than `size`), now; undefined when there is none or somebody waits. */
  tryAllocate(bytes: number): StagingBlock | undefined {
    return this.#waiting.length > 0 ? undefined : this.#take(bytes);
  }

  /** The same as soon as there is one; undefined when the deadline comes first. */
  allocate(bytes: number, deadline: Deadline): Promise<StagingBlock | undefined> {
    const block = deadline.expired ? undefined : this.tryAllocate(bytes);
    if (block || deadline.expired) return Promise.resolve(block);
    return new Promise((resolve) => {
      const waiter: Waiter = {
        size: bytes,
        give: (given) => {
          forget();
          resolve(given);
        },
      };
      const forget = deadline.whenExpired(() => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        waiter.give(undefined);
        this.#serve();
      });
      this.#waiting.push(waiter);
    });
  }

  /** Gives a block back. */
  free(block: StagingBlock): void {
    const at = this.#free.findIndex((other) => other.offset > block.offset);
    this.#free.splice(at < 0 ? this.#free.length : at, 0, block);
    this.#free = this.#free.reduce<StagingBlock[]>((joined, next) => {
      const last = joined.at(-1);
      if (last && last.offset + last.size === next.offset)
        joined[joined.length - 1] = { offset: last.offset, size: last.size + next.size };
      else joined.push(next);
      return joined;
    }, []);
    this.#serve();
  }

  #serve(): void {
    for (let waiter = this.#waiting[0]; waiter !== undefined; waiter = this.#waiting[0]) {
      const block = this.#take(waiter.size);
      if (!block) return;
      this.#waiting.shift();
      waiter.give(block);
    }
  }

  #take(bytes: number): StagingBlock | undefined {
    const size = Math.max(ALIGNMENT, Math.ceil(bytes / ALIGNMENT) * ALIGNMENT);
    const at = this.#free.findIndex((piece) => piece.size >= size);
    if (at < 0) return undefined;
    const piece = this.#free[at]!;
    const rest = { offset: piece.offset + size, size: piece.size - size };
    this.#free.splice(at, 1, ...(rest.size > 0 ? [rest] : []));
    return { offset: piece.offset, size };
  }
}
