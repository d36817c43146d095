import { test } from "uvu";
import * as assert from "uvu/assert";
import { encodeExtraKeys } from "../../src/hash/block-encoder.js";
import { BlockHasher, type BlockHasherOptions } from "../../src/hash/block-hasher.js";
import type { HashChainInput } from "../../src/hash/kernel.js";
import type { HashRequest } from "../../src/hash/request.js";
import { kernelAgrees, kernelChangesNothing } from "../../src/testing/laws/hash-laws.js";
import { check } from "../helpers/property.js";
import { referenceKernel } from "./reference-kernel.js";

// How a session drives a kernel. The kernel here is TypeScript; the native one has its own test.

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

function hashBoth(options: BlockHasherOptions, request: HashRequest) {
  const calls: HashChainInput[] = [];
  const plain = new BlockHasher(options).hash(request);
  const fast = new BlockHasher({ ...options, kernel: referenceKernel(calls) }).hash(request);
  assert.equal(fast.toHex(), plain.toHex());
  return { calls, hashes: plain };
}

test("a prompt of tokens alone is one call without extra keys", () => {
  const { calls } = hashBoth({ blockSize: 4, seed: "0" }, { promptTokenIds: range(0, 18) });
  assert.is(calls.length, 1);
  const { format, parent, tokens, blockSize, extras, extraEnds } = calls[0]!;
  assert.equal([format, blockSize, extras, extraEnds], ["pickle", 4, undefined, undefined]);
  assert.equal([...tokens], range(0, 16));
  assert.equal(parent, new BlockHasher({ blockSize: 4, seed: "0" }).noneHash.slice());
});

test("an append goes on from the last hash", () => {
  const calls: HashChainInput[] = [];
  const session = new BlockHasher({ blockSize: 2, kernel: referenceKernel(calls) }).session({
    promptTokenIds: [1, 2, 3],
  });
  session.advance();
  session.append([4, 5, 6, 7]);
  assert.equal(
    calls.map(({ tokens }) => [...tokens]),
    [
      [1, 2],
      [3, 4, 5, 6],
    ],
  );
  assert.equal(Buffer.from(calls[1]!.parent), Buffer.from(session.hashes.at(0)!));
});

test("every block has its own piece of extra keys; one without any has an empty piece", () => {
  const request = {
    promptTokenIds: range(0, 12),
    cacheSalt: "s",
    mmFeatures: [{ identifier: "image", offset: 9, length: 3 }],
  };
  for (const algorithm of ["sha256", "sha256_cbor"] as const) {
    const options = { blockSize: 4, algorithm, release: "vllm-0.27", seed: "0" } as const;
    const { calls } = hashBoth(options, request);
    const { format, extras, extraEnds } = calls[0]!;
    const salt = encodeExtraKeys(format, ["s"]);
    const image = encodeExtraKeys(format, [["image", 1]]);
    assert.is(calls.length, 1);
    assert.equal([...extraEnds!], [salt.length, salt.length, salt.length + image.length]);
    assert.equal(Buffer.from(extras!), Buffer.concat([salt, image]));
  }
});

test("extra keys too long for one frame go through the general encoder, the blocks around them through the kernel", () => {
  const long = "x".repeat(100_000);
  const image = (offset: number, identifier: string) => ({ identifier, offset, length: 1 });
  const request = {
    promptTokenIds: range(0, 20),
    mmFeatures: [image(1, "short"), image(9, long), image(17, "short")],
  };
  for (const algorithm of ["sha256", "sha256_cbor"] as const) {
    const { calls } = hashBoth({ blockSize: 4, algorithm }, request);
    assert.equal(
      calls.map(({ tokens }) => [tokens[0], tokens.length]),
      [
        [0, 8],
        [12, 8],
      ],
    );
  }
  const salted = hashBoth({ blockSize: 4 }, { promptTokenIds: range(0, 12), cacheSalt: long });
  assert.equal(
    salted.calls.map(({ tokens }) => tokens.length),
    [8],
  );
});

test("blocks that may not fit one frame stay with the general encoder", () => {
  for (const [blockSize, calls] of [
    [4_000, 1],
    [4_300, 0],
    [13_000, 0],
  ] as const) {
    const promptTokenIds = new Uint32Array(blockSize * 2).fill(0xffff_fff0);
    assert.is(hashBoth({ blockSize }, { promptTokenIds }).calls.length, calls, `${blockSize} tokens`);
  }
});

test("long blocks with long extra keys are one frame or fall back", () => {
  const promptTokenIds = new Uint32Array(8_400).fill(0xffff_fff0);
  for (const size of [29_000, 29_990, 30_100, 36_000])
    hashBoth({ blockSize: 4_200 }, { promptTokenIds, cacheSalt: "x".repeat(size) });
});

test("an asynchronous run hands the kernel several calls that follow each other", async () => {
  const calls: HashChainInput[] = [];
  const tokens = Uint32Array.from(range(0, 50_000));
  const hasher = new BlockHasher({ blockSize: 4, kernel: referenceKernel(calls) });
  const hashes = await hasher.hashAsync(tokens);
  assert.ok(calls.length >= 2, `${calls.length} calls`);
  assert.is(
    calls.reduce((sum, call) => sum + call.tokens.length, 0),
    50_000,
  );
  assert.ok(Buffer.from(hashes.blob).equals(new BlockHasher({ blockSize: 4 }).hash(tokens).blob));
});

test("the xxhash algorithms never call a kernel", async () => {
  const calls: HashChainInput[] = [];
  const hasher = await BlockHasher.create({
    blockSize: 2,
    algorithm: "xxhash",
    seed: "0",
    kernel: referenceKernel(calls),
  });
  assert.equal([hasher.hash([1, 2]).length, calls.length, hasher.kernel], [1, 0, undefined]);
});

const variants: readonly Omit<BlockHasherOptions, "blockSize">[] = [
  { algorithm: "sha256" },
  { algorithm: "sha256_cbor" },
  { algorithm: "sha256", release: "vllm-0.27", seed: "0" },
  { algorithm: "sha256", numHashLookaheadTokens: 3 },
  { algorithm: "sha256_cbor", numHashLookaheadTokens: 1 },
];
for (const options of variants)
  test(`law: a kernel changes nothing, ${JSON.stringify(options)}`, () => {
    check(kernelChangesNothing(referenceKernel(), options));
  });

for (const format of ["pickle", "cbor"] as const)
  test(`law: the kernel of this test is right about ${format}`, () => {
    check(kernelAgrees(referenceKernel(), format));
  });

test.run();
