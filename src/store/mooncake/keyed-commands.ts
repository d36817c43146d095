import type { FlatKeys } from "../../key/key-table.js";
import type { Deadline } from "../shared/deadline.js";
import { joinedKeys, keyFrames } from "./key-frames.js";
import type { ReplyReader } from "./replies.js";
import type { SharedMemories } from "./shared-memory.js";
import type { Outcome, Sidecar, TouchedMemory } from "./sidecar.js";

/** Keys with more bytes than this go through the staging memory: the socket would take them in many small turns. */
const LONG = 16 << 10;

/** A command that has keys: `head`, the keys, `tail`. */
export interface KeyedCommand<T> {
  readonly head: readonly Uint8Array[];
  readonly keys: FlatKeys;
  readonly tail?: readonly Uint8Array[] | undefined;
  readonly reply: ReplyReader<T>;
  /** Default: none. */
  readonly touched?: TouchedMemory | undefined;
}

/** Sends commands that have keys. */
export class KeyedCommands {
  readonly #sidecar: Sidecar;
  readonly #memories: SharedMemories;

  constructor(sidecar: Sidecar, memories: SharedMemories) {
    this.#sidecar = sidecar;
    this.#memories = memories;
  }

  /** As `Sidecar.command`. */
  async run<T>(
    { head, keys, tail = [], reply, touched }: KeyedCommand<T>,
    deadline: Deadline,
  ): Promise<Outcome<T>> {
    const { blocks, staging } = this.#memories;
    const joined = joinedKeys(keys);
    const block = joined.length > LONG ? blocks.tryAllocate(joined.length) : undefined;
    if (!block)
      return this.#sidecar.command([...head, ...keyFrames(keys), ...tail], reply, deadline, touched);
    let over: Promise<void> = Promise.resolve();
    try {
      staging.memory.bytes.set(joined, block.offset);
      const place = { region: staging.number, offset: block.offset };
      const frames = [...head, ...keyFrames(keys, place), ...tail];
      const outcome = await this.#sidecar.command(frames, reply, deadline, touched);
      over = outcome.over;
      return outcome;
    } finally {
      over.then(() => blocks.free(block));
    }
  }
}
