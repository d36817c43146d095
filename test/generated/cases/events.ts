import { ALL, accept, OLD, refuse, SHARED, type WireCase } from "./builders.js";

/** Cases of the family `events`. */
export const EVENT_CASES: readonly WireCase[] = [
  accept(ALL, "BlockStored", "hashes in both forms", {
    block_hashes: ["0", "0x", "0x00ff"],
    parent_block_hash: "0xab",
  }),
  accept(ALL, "BlockStored", "extra keys of every kind", {
    extra_keys: [
      null,
      [],
      ["lora", ["img", -3], { bytes: "0102" }, { integer: "18446744073709551615" }, null, 0.5, true],
    ],
  }),
  accept(ALL, "KVEventBatch", "events of every kind", {
    ts: 0,
    events: [
      { type: "AllBlocksCleared" },
      { type: "BlockRemoved", block_hashes: [] },
      { type: "BlockStored", block_hashes: [], parent_block_hash: "1", token_ids: [], block_size: 16 },
    ],
    data_parallel_rank: 3,
  }),
  accept(ALL, "BlockStored", "a block of an unknown size", { block_size: 0 }),
  refuse(ALL, "BlockStored", "hex without 0x", { block_hashes: ["ab"] }, /or 0x and lower-case hex/),
  refuse(ALL, "BlockStored", "a token above 32 bits", { token_ids: [2 ** 32] }, /\$\.token_ids\[0\]/),
  refuse(ALL, "BlockStored", "the tag of another event", { type: "BlockRemoved" }, /\$\.type/),
  refuse(OLD, "BlockStored", "a session before there were any", { session_id: "s" }, /only in vllm-0\.31/),
  refuse(
    SHARED.filter((release) => release !== "vllm-0.33"),
    "BlockStored",
    "lookahead tokens before there were any",
    { lookahead_token_ids: [] },
    /only in vllm-0\.33/,
  ),
  refuse(
    ALL,
    "KVEventBatch",
    "an event of no kind",
    { events: [{ type: "BlockMoved" }] },
    /\$\.events\[0\]\.type: "BlockMoved" is refused: expected one of "BlockStored", "BlockRemoved", "AllBlocksCleared"/,
  ),
  refuse(
    ALL,
    "KVEventBatch",
    "an event without its members",
    { events: [{ type: "BlockStored" }] },
    /at \$\.events\[0\]: the property "block_hashes" is missing/,
  ),
];
