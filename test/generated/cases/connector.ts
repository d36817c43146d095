import { ALL, accept, refuse, SHARED, type WireCase } from "./builders.js";
import { LOAD } from "./request.js";
import { SMALLEST } from "./smallest.js";

/** Cases of the family `connector`. */
export const CONNECTOR_CASES: readonly WireCase[] = [
  accept(ALL, "MooncakeStoreConnectorMetadata", "jobs", {
    requests: [SMALLEST["ReqMeta"], SMALLEST["ReqMeta"]],
  }),
  accept(ALL, "MooncakeStoreConnectorMetadata", "odd names", {
    preempted_req_ids: ["__proto__", "constructor", "0"],
  }),
  refuse(
    ALL,
    "MooncakeStoreConnectorMetadata",
    "a name twice",
    { unfinished_request_ids: ["a", "b", "a"] },
    /\$\.unfinished_request_ids\[2\]: "a" repeats \$\.unfinished_request_ids\[0\]/,
  ),
  refuse(
    ALL,
    "MooncakeStoreConnectorMetadata",
    "__proto__ twice",
    { preempted_req_ids: ["__proto__", "__proto__"] },
    /"__proto__" repeats/,
  ),
  refuse(
    ALL,
    "MooncakeStoreConnectorMetadata",
    "a set",
    { preempted_req_ids: new Set(["a"]) },
    /\$\.preempted_req_ids: .* is refused: expected a list without repetitions/,
  ),
  refuse(
    ALL,
    "MooncakeStoreConnectorMetadata",
    "a fault deep inside",
    {
      requests: [
        SMALLEST["ReqMeta"],
        { ...(SMALLEST["ReqMeta"] as object), load_spec: { ...LOAD, token_len: -1 } },
      ],
    },
    /\$\.requests\[1\]\.load_spec\.token_len: -1 is refused/,
  ),
  accept(SHARED, "MooncakeStoreWorkerMetadata", "counts", {
    completed_saves: [
      [5, 3],
      [0, 1],
    ],
  }),
  refuse(
    SHARED,
    "MooncakeStoreWorkerMetadata",
    "a job twice",
    {
      completed_saves: [
        [5, 3],
        [5, 1],
      ],
    },
    /\$\.completed_saves\[1\]: \[5,1\] repeats \$\.completed_saves\[0\]; a map has no key twice/,
  ),
  refuse(
    SHARED,
    "MooncakeStoreWorkerMetadata",
    "an object",
    { completed_saves: { 5: 3 } },
    /expected a list of \[key, value\] pairs/,
  ),
  refuse(
    SHARED,
    "MooncakeStoreWorkerMetadata",
    "a count of 0",
    { completed_saves: [[5, 0]] },
    /\$\.completed_saves\[0\]\[1\]: 0 is refused/,
  ),
  refuse(SHARED, "MooncakeStoreWorkerMetadata", "a Map", new Map(), /expected a JSON value/),
  refuse(SHARED, "MooncakeStoreWorkerMetadata", "a Date", new Date(0), /expected a JSON value/),
];
