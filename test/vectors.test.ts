import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { vectorHandlers } from "../src/conformance/vectors/index.js";
import { runVectorFile } from "../src/conformance/vectors/runner.js";

// Every golden vector file whose ops this implementation knows, line by line. What vLLM did is right.

const folder = join(import.meta.dirname, "vectors");

/** Files that must be known whatever else is. */
const REQUIRED = [
  "chunk_hashes.jsonl",
  "hashing.jsonl",
  "hashing_vllm-0.27.jsonl",
  "hashing_vllm-0.31.jsonl",
  "keys.jsonl",
  "layout_rank_local.jsonl",
  "layout_tp_shared.jsonl",
  "pickle.jsonl",
  "process_tokens.jsonl",
  "request.jsonl",
  "engine_e2e.jsonl",
  "kv_events.jsonl",
  "kv_index.jsonl",
  "lookup_wire.jsonl",
  "scheduler_trace.jsonl",
  "worker_store_ops.jsonl",
  "coordinator_hit.jsonl",
  "coordinator_masks.jsonl",
];

/** The ops of a file; empty for a file that has none. */
function opsOf(file: string): Set<string> {
  const ops = new Set<string>();
  for (const line of readFileSync(join(folder, file), "utf8").split("\n"))
    if (line.trim() !== "") ops.add((JSON.parse(line) as { op?: string }).op ?? "");
  return ops;
}

const known = readdirSync(folder)
  .filter((file) => file.endsWith(".jsonl"))
  .filter((file) => [...opsOf(file)].every((op) => Object.hasOwn(vectorHandlers, op)));

test("the vector files of the data layer are all known", () => {
  assert.equal(
    REQUIRED.filter((file) => !known.includes(file)).map((file) => [
      file,
      [...opsOf(file)].filter((op) => !Object.hasOwn(vectorHandlers, op)),
    ]),
    [],
  );
});

for (const file of known)
  test(`${file}: every line`, async () => {
    const report = await runVectorFile(join(folder, file), vectorHandlers);
    assert.ok(report.total > 0, "no lines");
    assert.equal(report.failures.slice(0, 3), [], `${report.failed} of ${report.total} failed`);
    assert.equal([report.failed, report.passed], [0, report.total]);
  });

test.run();
