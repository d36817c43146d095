import { ALL, accept, OLD, refuse, SHARED, type WireCase } from "./builders.js";

/** Cases of the family `lookup`. */
export const LOOKUP_CASES: readonly WireCase[] = [
  accept(SHARED, "MooncakeLookupResult", "boundaries", {
    tail_key_boundaries: [{ group_id: 2 ** 32 - 1, num_tokens: 0 }],
  }),
  refuse(
    SHARED,
    "MooncakeLookupResult",
    "a length that the frame can't hold",
    { hit_length: 2 ** 32 },
    /expected an integer from 0 to 4294967295/,
  ),
  refuse(SHARED, "TailKeyBoundary", "a list", [0, 12], /expected the object TailKeyBoundary/),
  refuse(
    OLD,
    "LookupReply",
    "boundaries before there were any",
    { tail_key_boundaries: [] },
    /LookupReply has "tail_key_boundaries" only in vllm-0.31/,
  ),
  refuse(
    ALL,
    "LookupRequest",
    "odd hex",
    { block_hashes: "abc" },
    /\$\.block_hashes: "abc" is refused: expected bytes as lower-case hex/,
  ),
  refuse(ALL, "LookupRequest", "upper-case hex", { block_hashes: "AB" }, /\$\.block_hashes: "AB" is refused/),
  refuse(ALL, "LookupRequest", "hex with a line break", { block_hashes: "ab\n" }, /\$\.block_hashes/),
  refuse(
    ALL,
    "LookupRequest",
    "hashes of 64 KiB",
    { hash_len: 65536 },
    /expected an integer from 0 to 65535/,
  ),
  accept(ALL, "LookupRequest", "no hashes", { hash_len: 0, block_hashes: "" }),
  refuse(ALL, "ResetReply", "a number", { ok: 1 }, /\$\.ok: 1 is refused: expected true or false/),
  refuse(ALL, "ResetRequest", "a property", { force: true }, /ResetRequest has no "force"/),
];
