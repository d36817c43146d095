import { ALL, accept, refuse, type WireCase } from "./builders.js";

/** Cases of the family `store`. */
export const STORE_CASES: readonly WireCase[] = [
  accept(ALL, "SidecarCommand", "the last number", { request_id: 2 ** 32 - 1, alone: false }),
  accept(ALL, "SidecarSetup", "all that 64 bits hold", { global_segment_size: "18446744073709551615" }),
  accept(ALL, "SidecarKeys", "keys in a region", {
    key_length: 0,
    key_ends: "0200000005000000",
    region: 3,
    offset: "4096",
    size: 5,
    keys: "",
  }),
  refuse(ALL, "SidecarCommand", "a number above 32 bits", { request_id: 2 ** 32 }, /\$\.request_id/),
  refuse(
    ALL,
    "CallOptions",
    "a deadline before the call",
    { deadline_ms: -1 },
    /\$\.deadline_ms: -1 is refused/,
  ),
  refuse(
    ALL,
    "PutOptions",
    "a soft pin of no time",
    { soft_pin_ttl_ms: 0 },
    /\$\.soft_pin_ttl_ms: 0 is refused/,
  ),
  refuse(ALL, "RemoveOptions", "a flag as text", { force: "yes" }, /\$\.force: "yes" is refused/),
  refuse(ALL, "SidecarRegister", "a size that is a number", { size: 4096 }, /\$\.size: 4096 is refused/),
  refuse(ALL, "SidecarRegister", "a negative inode", { inode: "-1" }, /\$\.inode: "-1" is refused/),
  refuse(ALL, "SidecarFailure", "text that is no hex", { message: "no" }, /\$\.message: "no" is refused/),
  refuse(ALL, "SidecarPut", "half a byte", { groups: "0" }, /\$\.groups: "0" is refused/),
];
