import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  type LayoutChoice,
  resolveStoreTpSize,
  selectStoreLayout,
} from "../../../src/connector/worker/select-layout.js";

const CHOICE: LayoutChoice = {
  extraConfig: { store_tp_size: 4 },
  groups: [{ kvCacheSpec: { kind: "full", blockSize: 16 } }],
  cacheLayout: "LBHNC",
  numKvHeads: 8,
  tpSize: 2,
  ppSize: 1,
  pcpSize: 1,
  dcpSize: 1,
};

const namespace = (more: Partial<LayoutChoice>) => selectStoreLayout({ ...CHOICE, ...more }).namespace;

test("the shards of several TP sizes are their least common multiple, in any order", () => {
  const shards = (sizes: unknown) =>
    resolveStoreTpSize({ enable_store_tp_lcm: true, prefill_tp_sizes: sizes });
  assert.is(shards([1, 2, 4]), 4);
  assert.is(shards([4, 6]), 12);
  assert.is(shards([6, 4]), 12);
  for (const odd of [[], [2, 0], [2, true], "2,4", undefined]) assert.is(shards(odd), undefined);
  for (const odd of [true, "4", 0, -1, 2.5, null])
    assert.is(resolveStoreTpSize({ store_tp_size: odd }), undefined);
});

test("nobody asks: the historical keys", () => {
  assert.is(namespace({ extraConfig: {} }), "");
  assert.is(namespace({ extraConfig: { store_tp_size: null } }), "");
});

test("one format for several TP sizes", () => {
  assert.is(namespace({}), "@store_tp:4@store_pp:1@store_format:tp_shared_lbhnc");
  assert.is(
    namespace({ cacheLayout: "LBNHC", ppSize: 2 }),
    "@store_tp:4@store_pp:2@store_format:tp_shared_lbnhc",
  );
  assert.is(namespace({ numKvHeads: 1 }), "@store_pp:1@store_format:tp_shared_mqa");
});

test("where that can't be, only engines of the same shape meet", () => {
  const own = "@store_pp:1@store_format:rank_local_tp2_layout_LBHNC";
  const full = { kvCacheSpec: { kind: "full", blockSize: 16 } } as const;
  assert.is(namespace({ numKvHeads: 6 }), own);
  assert.is(namespace({ extraConfig: { store_tp_size: 3 } }), own);
  assert.is(namespace({ extraConfig: { store_tp_size: "4" } }), own);
  assert.is(namespace({ groups: [full, full] }), own);
  assert.is(namespace({ groups: [{ kvCacheSpec: { kind: "mla", blockSize: 16 } }] }), own);
  assert.is(namespace({ dcpSize: 2 }), own);
  assert.is(namespace({ extraConfig: { store_tp_size: 4, enable_cross_layers_blocks: "True" } }), own);
  assert.is(namespace({ cacheLayout: "BLHNC" }), "@store_pp:1@store_format:rank_local_tp2_layout_BLHNC");
});

test.run();
