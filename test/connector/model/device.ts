import type { ModelRequest } from "./model-request.js";
import { BLOCK_TOKENS, rightBytes } from "./truth.js";
import type { World } from "./world.js";

/** The device of an engine: it writes what the model computes some time after it was told to, which a fence waits for. */
export class ModelDevice {
  readonly #world: World;
  #unwritten: (() => void)[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  /** The tokens `[start, end)` of a request are computed. */
  compute({ family, tables }: ModelRequest, start: number, end: number): void {
    const { memories } = this.#world;
    const first = Math.floor(start / BLOCK_TOKENS);
    const last = Math.ceil(end / BLOCK_TOKENS);
    let written = false;
    this.#unwritten.push(() => {
      if (written) return;
      written = true;
      for (const [rank, memory] of memories.entries())
        for (const [group, table] of tables.entries())
          for (let index = first; index < last; index++)
            memory.block(table[index]!).set(rightBytes(family, index, group, rank));
    });
  }

  /** Everything is written. */
  finish(): void {
    for (const write of this.#unwritten.splice(0)) write();
  }

  /** Waits for what was told so far; or throws, or hangs. */
  fence(): () => void | Promise<void> {
    const { storm, random } = this.#world;
    const writes = [...this.#unwritten];
    const write = (): void => {
      for (const each of writes) each();
    };
    const kind = storm ? random.weighted({ now: 5, later: 10, throws: 1, rejects: 1, hangs: 1 }) : "later";
    return () => {
      if (kind === "throws") throw new Error("thrown by the fence");
      if (kind === "rejects") return Promise.reject(new Error("rejected by the fence"));
      if (kind === "hangs") return new Promise(() => {});
      if (kind === "now") return write();
      return new Promise((resolve) => setImmediate(resolve)).then(write);
    };
  }
}
