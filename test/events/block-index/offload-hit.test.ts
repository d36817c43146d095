import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  BlockIndex,
  type BlockIndexEngineInit,
  blockStored,
  EventHashes,
} from "../../../src/events/index.js";

// The tiers below the GPU: chunks of blocks, named by the hash of their last block.

const prompt = EventHashes.from(Array.from({ length: 24 }, (_, index) => BigInt(index)));

/** Blocks 0 to `gpu` on the GPU; of each group, the numbers of the chunks' last blocks on the CPU. */
function tokens(
  init: BlockIndexEngineInit,
  gpu: number,
  cpu: readonly (readonly number[])[],
  options: { media?: string[]; maxTokens?: number } = {},
): number {
  const index = new BlockIndex({ blockSize: 16 });
  index.engine("a", init);
  const stored = (ids: readonly number[], groupIdx: number, medium: string) =>
    index.apply(
      "a",
      blockStored({
        blockHashes: EventHashes.from(ids.map(BigInt)),
        blockSize: medium === "GPU" ? 16 : 0,
        medium,
        groupIdx,
      }),
    );
  for (const [groupIdx, ids] of cpu.entries()) {
    stored(
      Array.from({ length: gpu }, (_, index) => index),
      groupIdx,
      "GPU",
    );
    stored(ids, groupIdx, "CPU");
  }
  return index.match(prompt, options)[0]?.tokens ?? 0;
}

const FULL: BlockIndexEngineInit = { groups: [{ kind: "full", blockSize: 16 }] };
const PAIRS: BlockIndexEngineInit = { ...FULL, offloadChunkBlocks: 2 };
const HYBRID: BlockIndexEngineInit = {
  groups: [
    { kind: "full", blockSize: 16 },
    { kind: "swa", blockSize: 16, slidingWindow: 33 },
  ],
};

test("chunks carry on where the GPU ends", () => {
  assert.is(tokens(FULL, 2, [[0, 1, 2, 3]]), 64);
  assert.is(tokens(FULL, 2, [[2, 3]]), 64);
  assert.is(tokens(FULL, 2, [[3, 4]]), 32, "there is a gap");
  assert.is(tokens(FULL, 0, [[0, 1, 2]]), 48);
  assert.is(tokens(FULL, 2, [[0, 1, 2, 3]], { media: ["CPU"] }), 64);
  assert.is(tokens(FULL, 2, [[0, 1, 2, 3]], { media: ["GPU"] }), 32);
});

test("a chunk is whole or nothing, and begins where chunks begin", () => {
  assert.is(tokens(PAIRS, 0, [[1, 3]]), 64);
  assert.is(tokens(PAIRS, 0, [[0, 2]]), 0, "these are no last blocks of a chunk");
  assert.is(tokens(PAIRS, 3, [[3, 5]]), 96, "the chunk around the end of the hit is loaded again");
  assert.is(tokens(PAIRS, 3, [[3]]), 48, "less than a chunk is not loaded");
  assert.is(
    tokens(PAIRS, 0, [[1, 3]], { maxTokens: 63 }),
    63,
    "all is loaded, and the last token computed anew",
  );
  assert.is(tokens(PAIRS, 0, [[1, 3]], { maxTokens: 31 }), 0, "less than a chunk is not loaded");
});

test("every group must have its part of the chunks", () => {
  assert.is(tokens(HYBRID, 0, [[0, 1, 2, 3, 4], []]), 0);
  assert.is(
    tokens(HYBRID, 0, [
      [0, 1, 2, 3, 4],
      [0, 1, 2, 3, 4],
    ]),
    80,
  );
  assert.is(
    tokens(HYBRID, 0, [
      [0, 1, 2, 3, 4],
      [1, 2, 3],
    ]),
    64,
    "the last window of 3 chunks ends there",
  );
  assert.is(
    tokens(HYBRID, 0, [
      [0, 1, 2, 3, 4],
      [0, 1, 4],
    ]),
    32,
    "chunks that reach back to the first one are enough",
  );
});

test("states end hits at whole chunks, and one is enough", () => {
  const states: BlockIndexEngineInit = {
    groups: [
      { kind: "full", blockSize: 16 },
      { kind: "mamba", blockSize: 16 },
    ],
    offloadChunkBlocks: 2,
  };
  const chunks = [
    [1, 3, 5, 7],
    [3, 7],
  ];
  assert.is(tokens(states, 0, chunks), 128);
  assert.is(tokens(states, 0, chunks, { maxTokens: 127 }), 64);
});

test("a draft group proves one chunk more", () => {
  const draft: BlockIndexEngineInit = {
    eagle: true,
    groups: [
      { kind: "full", blockSize: 16 },
      { kind: "full", blockSize: 16, isEagleGroup: true },
    ],
  };
  assert.is(
    tokens(draft, 0, [
      [0, 1, 2, 3],
      [0, 1, 2, 3],
    ]),
    48,
  );
});

test.run();
