import { ALL, accept, OLD, refuse, refuseWhole, SHARED, type WireCase } from "./builders.js";
import { SMALLEST } from "./smallest.js";

/** Cases of the family `key`. */
export const KEY_CASES: readonly WireCase[] = [
  accept(ALL, "KeyMetadata", "an empty model name", { model_name: "" }),
  accept(ALL, "KeyMetadata", "the highest rank", { tp_rank: Number.MAX_SAFE_INTEGER }),
  accept(ALL, "KeyMetadata", "text of any script", { model_name: "模型/七号😀", cache_prefix: "__proto__" }),
  accept(SHARED, "KeyMetadata", "a namespace", { store_namespace: "@store_tp:4" }),
  refuse(
    OLD,
    "KeyMetadata",
    "a namespace before there was one",
    { store_namespace: "" },
    /only in vllm-0.31 and vllm-0.33/,
  ),
  refuse(
    ALL,
    "KeyMetadata",
    "a negative rank",
    { tp_rank: -1 },
    /\$\.tp_rank: -1 is refused: expected an integer from 0/,
  ),
  refuse(ALL, "KeyMetadata", "NaN", { pp_rank: Number.NaN }, /\$\.pp_rank: NaN is refused/),
  refuse(
    ALL,
    "KeyMetadata",
    "Infinity",
    { pp_rank: Number.POSITIVE_INFINITY },
    /\$\.pp_rank: Infinity is refused/,
  ),
  refuse(ALL, "KeyMetadata", "a fraction", { dcp_rank: 0.5 }, /\$\.dcp_rank: 0\.5 is refused/),
  refuse(ALL, "KeyMetadata", "2^53", { group_id: 2 ** 53 }, /\$\.group_id: 9007199254740992 is refused/),
  refuse(ALL, "KeyMetadata", "a bigint", { group_id: 1n }, /\$\.group_id: 1n is refused/),
  refuse(ALL, "KeyMetadata", "a rank as text", { tp_rank: "0" }, /\$\.tp_rank: "0" is refused/),
  refuse(
    ALL,
    "KeyMetadata",
    "an unknown property",
    { color: 1 },
    /\$\.color: the value 1 belongs to no property/,
  ),
  refuse(ALL, "KeyMetadata", "a name in camelCase", { modelName: "m" }, /KeyMetadata has no "modelName"/),
  refuse(
    ALL,
    "KeyMetadata",
    "an own __proto__",
    ownProto(),
    /\$\.__proto__: .* KeyMetadata has no "__proto__"/,
  ),
  refuseWhole(
    ALL,
    "KeyMetadata",
    "inherited properties",
    Object.assign(Object.create({ tp_rank: 0 }), keyWithoutRank()),
    /"tp_rank" is missing/,
  ),
  refuseWhole(
    ALL,
    "KeyMetadata",
    "a missing rank",
    keyWithoutRank(),
    /at \$: the property "tp_rank" is missing/,
  ),
  refuse(ALL, "KeyMetadata", "null", null, /at \$: null is refused: expected the object KeyMetadata/),
  refuse(ALL, "KeyMetadata", "a list", [], /at \$: \[\] is refused: expected the object KeyMetadata/),
  refuse(ALL, "KeyMetadata", "undefined", undefined, /at \$: undefined is refused/),
  refuse(
    ALL,
    "PoolKey",
    "a fault inside",
    { key_metadata: { ...(SMALLEST["KeyMetadata"] as object), tp_rank: null } },
    /\$\.key_metadata\.tp_rank: null is refused/,
  ),
  accept(ALL, "PoolKey", "a hash that is no hex", { chunk_hash: "e\u0301" }),
];

function keyWithoutRank(): Record<string, unknown> {
  const { tp_rank: _rank, ...rest } = SMALLEST["KeyMetadata"] as Record<string, unknown>;
  return Object.assign(Object.create(null) as Record<string, unknown>, rest);
}

function ownProto(): Record<string, unknown> {
  return JSON.parse(
    '{"model_name":"m","tp_rank":0,"pcp_rank":0,"dcp_rank":0,"pp_rank":0,"__proto__":{"a":1}}',
  );
}
