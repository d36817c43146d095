import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { releaseOfSource } from "../../../src/conformance/vectors/sources.js";
import { BlockIndex, type BlockIndexGroupInit, blockStored, EventHashes } from "../../../src/events/index.js";

// What the cache managers of each vLLM release found in random sets of held blocks, with a longest length that ends
// anywhere: searches.jsonl was recorded from their own `find_longest_cache_hit`. `held` lists hashes, group by group.

interface RecordedGroup {
  readonly kind: BlockIndexGroupInit["kind"];
  readonly block_size: number;
  readonly sliding_window?: number;
  readonly attention_chunk_size?: number;
  readonly is_eagle_group?: boolean;
}

interface RecordedSearch {
  readonly source: string;
  readonly hash_block_size: number;
  readonly groups: readonly RecordedGroup[];
  readonly use_eagle: boolean;
  readonly num_hashes: number;
  readonly held: readonly (readonly number[])[];
  readonly max_length: number;
  readonly expected: number;
}

const searches: readonly RecordedSearch[] = readFileSync(join(import.meta.dirname, "searches.jsonl"), "utf8")
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => JSON.parse(line));

const hashesOf = (ids: readonly number[]) => EventHashes.from(ids.map(BigInt));

function answer({
  source,
  hash_block_size,
  groups,
  use_eagle,
  num_hashes,
  held,
  max_length,
}: RecordedSearch) {
  const index = new BlockIndex({ blockSize: hash_block_size, capacity: 512 });
  index.engine("a", {
    release: releaseOfSource(source)!,
    eagle: use_eagle,
    groups: groups.map((group) => ({
      kind: group.kind,
      blockSize: group.block_size,
      slidingWindow: group.sliding_window,
      attentionChunkSize: group.attention_chunk_size,
      isEagleGroup: group.is_eagle_group,
    })),
  });
  for (const [groupIdx, ids] of held.entries()) {
    const { block_size } = groups[groupIdx]!;
    const isWhole = (id: number) => ((id + 1) * hash_block_size) % block_size === 0;
    for (const [blockSize, some] of [
      [block_size, ids.filter(isWhole)],
      [hash_block_size, ids.filter((id) => !isWhole(id))],
    ] as const)
      index.apply("a", blockStored({ blockHashes: hashesOf(some), blockSize, groupIdx, medium: "GPU" }));
  }
  const prompt = hashesOf(Array.from({ length: num_hashes }, (_, id) => id));
  const [match] = index.match(prompt, { maxTokens: max_length });
  return match?.tokens ?? 0;
}

test("an index finds what vLLM's managers find, up to any length", () => {
  assert.ok(searches.length > 500, `${searches.length} searches`);
  for (const search of searches) assert.is(answer(search), search.expected, JSON.stringify(search));
});

test.run();
