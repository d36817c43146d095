import { accept, NEW, refuse, refuseWhole, type WireCase } from "./builders.js";
import { SMALLEST } from "./smallest.js";

/** Cases of the family `connector-events`. */
export const CONNECTOR_EVENT_CASES: readonly WireCase[] = [
  accept(NEW, "NewRequestData", "the v2 model runner's prefill", { num_prefill_tokens: 40 }),
  accept(NEW, "CachedRequestData", "a whole table", { resumed: true, new_block_ids: [[1], []] }),
  accept(NEW, "RequestChanged", "everything", {
    num_prompt_tokens: 40,
    num_tokens: 41,
    num_computed_tokens: 40,
    new_block_hashes: ["ab", "00ff"],
    new_token_ids: [0, 200_018],
  }),
  accept(NEW, "BuildConnectorMeta", "everything", {
    scheduled_new_reqs: [SMALLEST["NewRequestData"]],
    scheduled_cached_reqs: [SMALLEST["CachedRequestData"]],
    num_scheduled_tokens: [
      ["r", 16],
      ["__proto__", 0],
    ],
    finished_req_ids: ["a"],
    preempted_req_ids: ["b"],
    block_tables: [SMALLEST["RequestBlocks"]],
    boundary_state_offloads: [{ req_id: "r", offloads: [[1, 7, 32]] }],
  }),
  accept(NEW, "UpdateConnectorOutput", "reports", {
    completed_saves: [
      [0, 2],
      [7, 1],
    ],
  }),
  ...Object.keys(SMALLEST)
    .filter((type) => (SMALLEST[type] as { readonly type?: unknown }).type === type)
    .filter((type) => !["BlockStored", "BlockRemoved", "AllBlocksCleared"].includes(type))
    .map(
      (type): WireCase => ({
        name: `a ${type}`,
        type: "SchedulerEvent",
        releases: NEW,
        json: SMALLEST[type],
      }),
    ),
  refuse(NEW, "NewRequestData", "a request without a name", { req_id: "" }, /\$\.req_id: "" is refused/),
  refuse(
    NEW,
    "NewRequestData",
    "a block id below 0",
    { block_ids: [[1, -1]] },
    /\$\.block_ids\[0\]\[1\]: -1 is refused/,
  ),
  refuse(NEW, "NewRequestData", "one list for all groups", { block_ids: [1, 2] }, /\$\.block_ids\[0\]/),
  refuse(
    NEW,
    "BuildConnectorMeta",
    "a request twice",
    {
      num_scheduled_tokens: [
        ["r", 1],
        ["r", 2],
      ],
    },
    /repeats \$\.num_scheduled_tokens\[0\]; a map has no key twice/,
  ),
  refuse(
    NEW,
    "BuildConnectorMeta",
    "a state of two numbers",
    { boundary_state_offloads: [{ req_id: "r", offloads: [[1, 7]] }] },
    /\$\.boundary_state_offloads\[0\]\.offloads\[0\]/,
  ),
  refuse(
    NEW,
    "UpdateConnectorOutput",
    "a job reported by nobody",
    { completed_saves: [[0, 0]] },
    /\$\.completed_saves\[0\]\[1\]: 0 is refused/,
  ),
  refuse(NEW, "RequestChanged", "an empty hash", { new_block_hashes: [""] }, /\$\.new_block_hashes\[0\]/),
  refuse(NEW, "RequestChanged", "the tag of another event", { type: "ResetCache" }, /\$\.type/),
  refuseWhole(
    NEW,
    "SchedulerEvent",
    "the members of another event",
    { type: "GetNumNewMatchedTokens", req_id: "r", num_external_tokens: 0 },
    /at \$: .*num_(?:computed|external)_tokens/,
  ),
];
