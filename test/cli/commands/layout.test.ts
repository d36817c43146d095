import { readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { run, runJson } from "../helpers/run.js";

const FIXTURE = "test/cli/fixtures/layout.json";
const example = JSON.parse(readFileSync(FIXTURE, "utf8")) as Record<string, unknown>;

interface LayoutJson {
  readonly objects: readonly {
    readonly chunk: number;
    readonly shard_id: number;
    readonly block_id: number;
    readonly key: string | null;
    readonly segments: readonly {
      readonly address: string;
      readonly size: string;
      readonly tensor: number | null;
      readonly offset: string | null;
    }[];
  }[];
  readonly totals: { readonly objects: number; readonly segments: number; readonly bytes: string };
}

const layout = (description: unknown) =>
  runJson<LayoutJson>(["layout", "-"], { stdin: JSON.stringify(description) });

test("prints keys, segments and totals", async () => {
  const { exitCode, stdout, stderr } = await run(["layout", FIXTURE]);
  assert.equal([exitCode, stderr], [0, ""]);
  const lines = stdout.split("\n");
  assert.equal(lines.slice(0, 8), [
    "chunk 0 [0, 16)  shard 2  block 5  2 segments  16384 bytes",
    "  key m@store_tp:4@store_pp:1@store_format:tp_shared_lbhnc@tp_rank:2@pcp0@dcp0@pp_rank:0@group:0@6358e31578a64b75ebe28cdb99d3beae65de82a2087321dc6ec84ae048faaaa6",
    "  0x7f0000014000  8192  tensor 0 + 81920",
    "  0x7f0000094000  8192  tensor 1 + 81920",
    "chunk 0 [0, 16)  shard 3  block 5  2 segments  16384 bytes",
    "  key m@store_tp:4@store_pp:1@store_format:tp_shared_lbhnc@tp_rank:3@pcp0@dcp0@pp_rank:0@group:0@6358e31578a64b75ebe28cdb99d3beae65de82a2087321dc6ec84ae048faaaa6",
    "  0x7f0000016000  8192  tensor 0 + 90112",
    "  0x7f0000096000  8192  tensor 1 + 90112",
  ]);
  assert.is(lines.at(-2), "4 objects, 8 segments, 65536 bytes");
});

test("JSON has decimal addresses, the place of each segment, and one shard a chunk where asked", async () => {
  const { value } = await layout({ ...example, shard_ids: [3, 2], hashes: null });
  assert.equal(value.totals, { objects: 2, segments: 4, bytes: "32768" });
  assert.equal(
    value.objects.map(({ chunk, shard_id, block_id, key }) => [chunk, shard_id, block_id, key]),
    [
      [0, 3, 5, null],
      [1, 2, 9, null],
    ],
  );
  assert.equal(value.objects[0]!.segments[1], {
    address: String(0x7f0000096000),
    size: "8192",
    tensor: 1,
    offset: "90112",
  });
});

test("a segment beyond every tensor is shown as such", async () => {
  const { stdout } = await run(["layout", "-"], {
    stdin: JSON.stringify({ ...example, block_ids: [5, 64] }),
  });
  assert.match(stdout, "in no tensor: is the block id too large?");
});

test("warns where a shared layout has no namespace", async () => {
  const description = { ...example, metadata: { model_name: "m" } };
  const { exitCode, stderr } = await run(["layout", "-"], { stdin: JSON.stringify(description) });
  assert.is(exitCode, 0);
  assert.match(stderr, "store_namespace is empty");
});

interface VectorInput {
  readonly storages: readonly { readonly address: string; readonly nbytes: number }[];
  readonly tensors: readonly {
    readonly storage: number;
    readonly dtype: string;
    readonly element_size: number;
    readonly shape: readonly number[];
    readonly stride: readonly number[];
    readonly data_ptr: string;
  }[];
  readonly shard_ids?: readonly number[];
}

interface VectorPrepared {
  readonly addrs: readonly (readonly string[])[];
  readonly sizes: readonly (readonly number[])[];
  readonly block_ids: readonly number[];
}

/** The descriptions that vLLM's recorded registrations amount to, each with what vLLM made of it. */
function* recorded(
  file: string,
): Iterable<readonly [id: string, description: object, prepared: VectorPrepared]> {
  for (const line of readFileSync(`test/vectors/${file}`, "utf8").trim().split("\n")) {
    const { id, op, input, expected } = JSON.parse(line);
    if (op !== "register_kv_caches" || expected?.prepared === undefined || "group_kernel_blocks" in input)
      continue;
    const { storages, tensors, shard_ids, ...rest } = input as VectorInput & Record<string, unknown>;
    const shared = "layout" in rest;
    const members = ["num_blocks", "chunks", "block_ids"];
    if (shared) members.push("hash_block_size", "local_tp_size", "store_tp_size", "tp_rank", "num_kv_heads");
    yield [
      id,
      {
        ...Object.fromEntries(members.map((name) => [name, rest[name]])),
        block_size: rest["block_size"] ?? 16,
        layout: rest["layout"] ?? "rank_local",
        metadata: rest["metadata"] ?? { model_name: "m" },
        tensors: tensors.map((tensor) => ({
          address: tensor.data_ptr,
          storage_address: storages[tensor.storage]!.address,
          storage_bytes: storages[tensor.storage]!.nbytes,
          shape: tensor.shape,
          strides: tensor.stride,
          element_size: tensor.element_size,
          dtype: tensor.dtype,
        })),
        ...(shared && { shard_ids }),
      },
      expected.prepared,
    ];
  }
}

for (const file of ["layout_rank_local.jsonl", "layout_tp_shared.jsonl"])
  test(`finds the memory that vLLM found: ${file}`, async () => {
    let checked = 0;
    for (const [id, description, prepared] of recorded(file)) {
      const { exitCode, value } = await layout(description);
      assert.is(exitCode, 0, id);
      const of = (part: "address" | "size") =>
        value.objects.map(({ segments }) => segments.map((segment) => segment[part]));
      assert.equal(of("address"), prepared.addrs, id);
      assert.equal(of("size").flat(), prepared.sizes.flat().map(String), id);
      assert.equal(
        value.objects.map(({ block_id }) => block_id),
        prepared.block_ids,
        id,
      );
      checked++;
    }
    assert.ok(checked >= 40, `${checked} registrations checked`);
  });

test("refuses a bad description, naming what is wrong in it", async () => {
  const tensor = (example["tensors"] as object[])[0]!;
  const cases: readonly (readonly [unknown, RegExp])[] = [
    [[], /must be an object/],
    [{ ...example, chunk: [] }, /unknown member "chunk"; did you mean chunks\?/],
    [{ ...example, chunks: [[16, 0]] }, /chunks\[0\] is \[16,0\]/],
    [{ ...example, num_blocks: -1 }, /num_blocks -1 is not a whole number/],
    [{ ...example, num_blocks: undefined }, /lacks the member num_blocks/],
    [{ ...example, hashes: ["ab"] }, /1 hashes for 2 chunks/],
    [{ ...example, layout: "LHBNC" }, /ERR_SCHEMA: StoreLayoutConfig .*\$\.layout/],
    [{ ...example, metadata: { model_name: "m", tp_rank: -1 } }, /ERR_SCHEMA: .*metadata\.tp_rank/],
    [
      { ...example, tensors: [{ ...tensor, address: -1 }] },
      /ERR_SCHEMA: tensors\[0\]: CacheTensor .*\$\.address/,
    ],
    [{ ...example, tensors: [{ ...tensor, address: 2 ** 60 }] }, /ERR_SCHEMA: tensors\[0\]/],
    [{ ...example, tensors: [{ ...tensor, strides: [1, 1, 1, 1] }] }, /ERR_LAYOUT/],
    [{ ...example, block_ids: [5] }, /ERR_LAYOUT: chunk 1 starts at token 16/],
    [{ ...example, shard_ids: [0, 1] }, /ERR_LAYOUT: shard 0 does not belong to this rank/],
  ];
  for (const [description, message] of cases) {
    const stdin = JSON.stringify(description);
    const { exitCode, stdout, stderr } = await run(["layout", "-"], { stdin });
    assert.equal([exitCode, stdout], [2, ""], stderr);
    assert.match(stderr, message);
  }
});

test.run();
