import { ALL, accept, refuse, type WireCase } from "./builders.js";
import { SMALLEST } from "./smallest.js";

/** Cases of the family `event-index`. */
export const EVENT_INDEX_CASES: readonly WireCase[] = [
  accept(ALL, "BlockIndexGroup", "a window", { kind: "swa", sliding_window: 128 }),
  accept(ALL, "BlockIndexGroup", "a chunk", { kind: "chunked_local", attention_chunk_size: 8192 }),
  refuse(ALL, "BlockIndexGroup", "a window without tokens", { kind: "swa" }, /need sliding_window/),
  refuse(
    ALL,
    "BlockIndexGroup",
    "a window of null",
    { kind: "swa_mla", sliding_window: null },
    /\$\.sliding_window: null is refused/,
  ),
  refuse(
    ALL,
    "BlockIndexGroup",
    "a chunk without tokens",
    { kind: "chunked_local" },
    /needs attention_chunk_size/,
  ),
  refuse(ALL, "BlockIndexGroup", "a kind that never hits", { kind: "cross" }, /\$\.kind: "cross" is refused/),
  accept(ALL, "BlockIndexEngine", "everything", {
    release: "vllm-0.31",
    hash_block_size: 16,
    groups: [SMALLEST["BlockIndexGroup"]],
    chunk_sizes: [[1, 8192]],
    eagle: true,
    eagle_groups: [1],
    offload_chunk_blocks: 4,
  }),
  refuse(
    ALL,
    "BlockIndexEngine",
    "a chunk of no blocks",
    { offload_chunk_blocks: 0 },
    /\$\.offload_chunk_blocks: 0 is refused/,
  ),
  refuse(
    ALL,
    "BlockIndexEngine",
    "a group twice",
    {
      chunk_sizes: [
        [1, 8192],
        [1, 4096],
      ],
    },
    /repeats/,
  ),
];
