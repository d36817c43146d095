import type { Place } from "./region-memory.js";

/** Spreads a stream of bytes over places, in order. */
export class Scatter {
  readonly #places: readonly Place[];
  #place = 0;
  #done = 0;

  constructor(places: readonly Place[]) {
    this.#places = places;
  }

  /** Starts again at the first place. */
  restart(): void {
    this.#place = 0;
    this.#done = 0;
  }

  /** The next bytes of the stream; those beyond the last place have none and are left out. */
  write(bytes: Uint8Array): void {
    let taken = 0;
    while (taken < bytes.length) {
      const place = this.#places[this.#place];
      if (place === undefined) return;
      const size = Math.min(place.size - this.#done, bytes.length - taken);
      place.write(this.#done, bytes.subarray(taken, taken + size));
      taken += size;
      this.#done += size;
      if (this.#done === place.size) {
        this.#place++;
        this.#done = 0;
      }
    }
  }
}
