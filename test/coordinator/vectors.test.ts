import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { coordinatorHandlers } from "../../src/conformance/vectors/coordinator.js";
import { Deviation } from "../../src/conformance/vectors/deviation.js";
import type { VectorContext } from "../../src/conformance/vectors/handler.js";
import { runVectorFile } from "../../src/conformance/vectors/runner.js";

const run = (file: string) =>
  runVectorFile(join(import.meta.dirname, "..", "vectors", file), coordinatorHandlers);

test("hits and lookups: every line, the death of vLLM's lookup thread apart", async () => {
  const report = await run("coordinator_hit.jsonl");
  assert.equal(report.failures.slice(0, 3), []);
  assert.equal([report.total, report.failed], [1162, 0]);
  assert.equal(report.deviations, { "lookup-death": 11 });
});

test("masks: every line", async () => {
  const report = await run("coordinator_masks.jsonl");
  assert.equal(report.failures.slice(0, 3), []);
  assert.equal([report.total, report.failed, report.deviations], [882, 0, {}]);
});

const input = {
  coordinator: {
    groups: [{ kind: "full", block_size: 16 }],
    scheduler_block_size: 16,
    hash_block_size: 16,
    use_eagle: false,
    enable_partial_hash_hits: false,
    retention_interval: null,
  },
  num_hashes: 4,
  num_tokens: 65,
  exists: [[0, 1]],
};
const recorded = (error?: string): VectorContext => ({
  release: "vllm-0.33",
  id: "x",
  text: "",
  recorded: error === undefined ? {} : { error: { type: error, message: "" } },
});

test("a recorded exception counts as the deviation only where ours is a miss that says why", async () => {
  const plain = await coordinatorHandlers["lookup"]!(input, recorded());
  assert.equal((plain as { hit_length: number }).hit_length, 32);
  const claimed = await coordinatorHandlers["lookup"]!(input, recorded("AssertionError"));
  assert.instance(claimed, Deviation);
  assert.not.equal((claimed as Deviation).right, (claimed as Deviation).actual);
});

test.run();
