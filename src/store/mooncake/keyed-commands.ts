import type { FlatKeys } from "../../key/key-table.js";
import type { Deadline } from "../admin/deadline.js";
import { joinedKeys, keyFrames } from "./key-frames.js";
import type { StoreMemory } from "./memory.js";
import type { Outcome, Sidecar, TouchedMemory } from "./sidecar.js";

/** Keys with more bytes than this go through the staging memory: the socket would take them in many small turns. */
const LONG = 16 << 10;

/** Sends commands that have keys. */
export class KeyedCommands {
  readonly #sidecar: Sidecar;
  readonly #memory: StoreMemory;

  constructor(sidecar: Sidecar, memory: StoreMemory) {
    this.#sidecar = sidecar;
    this.#memory = memory;
  }

  /** Runs the command `head`, keys, `tail`. */
  async run(
    head: readonly Uint8Array[],
    keys: FlatKeys,
    tail: readonly Uint8Array[],
    deadline: Deadline,
    touched: TouchedMemory,
  ): Promise<Outcome> {
    const { blocks, staging } = this.#memory;
    const joined = joinedKeys(keys);
    const block = joined.length > LONG ? blocks.tryAllocate(joined.length) : undefined;
    if (!block) return this.#sidecar.command([...head, ...keyFrames(keys), ...tail], deadline, touched);
    let over: Promise<void> = Promise.resolve();
    try {
      staging.bytes.set(joined, block.offset);
      const place = { region: staging.region.id, offset: block.offset };
      const frames = [...head, ...keyFrames(keys, place), ...tail];
      const outcome = await this.#sidecar.command(frames, deadline, touched);
      over = outcome.over;
      return outcome;
    } finally {
      over.then(() => blocks.free(block));
    }
  }
}
