import {
  estimateDiskOffloadStagingBytes,
  splitDiskOffloadLoadBatches,
  usableDiskOffloadBufferBudgetBytes,
} from "../../connector/worker/disk-staging.js";
import { type LoadPlan, loadPlan } from "../../connector/worker/load-rows.js";
import { rowSizes, sliceSegments } from "../../connector/worker/segment-rows.js";
import { isMooncakeKvError } from "../../errors.js";
import type { ReqMeta } from "../../request/req-meta.js";
import { firstDifference } from "./compare.js";
import { Deviation, type DeviationName } from "./deviation.js";
import { DueBlocks } from "./due-blocks.js";
import type { JsonObject, JsonValue } from "./handler.js";
import { isObject, list, object } from "./json.js";
import { readWorkerOptions } from "./worker-config.js";
import { memory, type SeenGet } from "./worker-store.js";
import type { StepNotes, WorkerTrace } from "./worker-trace.js";

// Recognises vLLM's known defects in the steps of a worker, by what the steps ask for, and says what is right instead.
// A record in which the defect makes no difference is no deviation.

/** The deviation that a record shows; undefined where it shows none. */
export function asDeviation(
  trace: WorkerTrace,
  config: JsonObject,
  steps: readonly JsonObject[],
  expected: JsonValue | undefined,
  actual: { readonly init: JsonObject; readonly steps: readonly JsonObject[] },
): Deviation | undefined {
  if (!isObject(expected)) return undefined;
  const names = new Set<DeviationName>();
  const due = new DueBlocks(trace);
  const notes = [...trace.notes];
  const right = list<JsonObject>(expected, "steps").map((record, index): JsonValue => {
    const step = steps[index]!;
    if (step["event"] === "lookup") return rightLookup(record, actual.steps[index]!, names);
    const note = notes.shift()!;
    const loaded = rightReads(trace, config, note, rightEmptyLoads(trace, note, record, names), names);
    return due.rightSaves(note, step, loaded, names);
  });
  const [name] = names;
  const whole = { ...expected, steps: right };
  if (name === undefined || firstDifference(expected, whole) === undefined) return undefined;
  return new Deviation(name, whole, actual);
}

/**
 * A lookup that vLLM's thread dies of is a miss. One after a block was stored that vLLM never stores may find more.
 */
function rightLookup(record: JsonObject, actual: JsonObject, names: Set<DeviationName>): JsonValue {
  if (record["error"] !== undefined) {
    names.add("lookup-death");
    const why = actual["?failure"] ?? "a miss that says why";
    return { ...actual, hit_length: 0, tail_key_boundaries: [], "?failure": why };
  }
  const more = Number(actual["hit_length"]) > Number(record["hit_length"]);
  if (!names.has("offset-skip") || !more) return record;
  const { hit_length, tail_key_boundaries } = actual;
  return { ...record, hit_length: hit_length!, tail_key_boundaries: tail_key_boundaries! };
}

function loadsOf({ metas }: StepNotes): ReqMeta[] {
  return metas.filter(({ loadSpec }) => loadSpec?.canLoad);
}

function planOf(trace: WorkerTrace, job: ReqMeta): LoadPlan | undefined {
  const { coordinator, groups, tpRank } = trace.worker.settings;
  if (coordinator === undefined || groups === undefined) return undefined;
  try {
    return loadPlan({ coordinator, databases: groups.databases, tpRank }, job, job.loadSpec!);
  } catch (error) {
    if (!isMooncakeKvError(error)) throw error;
    return undefined;
  }
}

/** A load without a single key is reported as finished, with nothing loaded. */
function rightEmptyLoads(
  trace: WorkerTrace,
  note: StepNotes,
  record: JsonObject,
  names: Set<DeviationName>,
): JsonObject {
  const empty = loadsOf(note).filter((job) => planOf(trace, job)?.keys.length === 0);
  if (empty.length === 0 || !trace.worker.settings.loadAsync) return record;
  names.add("empty-load");
  const { recv_jobs_never_finished: _, ...rest } = record;
  const finished = [...list<string>(record, "finished_recving"), ...empty.map(({ reqId }) => reqId)];
  return { ...rest, finished_recving: [...new Set(finished)].sort() };
}

/**
 * A load in several parts goes on after a part with failures, and ends where a call fails; an object is read where the
 * code is exactly its bytes; every block that was not filled is reported.
 */
function rightReads(
  trace: WorkerTrace,
  config: JsonObject,
  note: StepNotes,
  record: JsonObject,
  names: Set<DeviationName>,
): JsonObject {
  const { isHmaRequired: byRequest, loadAsync } = trace.worker.settings;
  const short = note.gets.some((get) => get.short);
  const { diskOffloadBufferBudgetBytes: raw = Number.POSITIVE_INFINITY, diskStagingUsableRatio } =
    readWorkerOptions(config);
  if (!short && (byRequest || raw === Number.POSITIVE_INFINITY)) return record;
  const usable =
    raw === Number.POSITIVE_INFINITY ? raw : usableDiskOffloadBufferBudgetBytes(raw, diskStagingUsableRatio);
  const gets = [...note.gets];
  const calls: JsonObject[] = [];
  const rows: JsonObject[] = [];
  const lost = new Set<number>();
  const failed = new Set(list<string>(record, "failed_recving"));
  let stopped = false;
  for (const job of loadsOf(note)) {
    const plan = planOf(trace, job);
    if (plan === undefined || plan.keys.length === 0) continue;
    const { keys, segments } = plan;
    const batches = batchesOf(plan, usable, raw);
    const read = new Set<number>();
    for (const [index, { start, end }] of batches.entries()) {
      const get = gets.shift();
      if (get === undefined) break;
      const batch = sliceSegments(segments, start, end);
      calls.push({ method: "batch_get_into_multi_buffers", keys: keys.slice(start, end), ...memory(batch) });
      rows.push(metricRow(get, Number(batch.totalBytes())));
      for (const [position, ok] of get.read.entries()) if (ok) read.add(start + position);
      const incomplete = get.read.includes(false);
      stopped ||= incomplete && !byRequest && index + 1 < batches.length;
      if (get.failed || (incomplete && byRequest)) break;
    }
    for (const [row, blockId] of segments.blockIds.entries()) {
      if (read.has(row)) continue;
      if (byRequest) failed.add(job.reqId);
      else lost.add(blockId);
    }
  }
  if (stopped) names.add("sub-batch-stop");
  if (short) names.add("short-read");
  if (!stopped && !short) return record;
  return {
    ...record,
    ...((stopped || byRequest) && { load_calls: calls }),
    failed_recving: loadAsync ? [...failed].sort() : [],
    invalid_block_ids: [...lost].sort((a, b) => a - b),
    operations: { ...object(record, "operations"), load_get: rows },
  };
}

function batchesOf({ keys, segments }: LoadPlan, usable: number, raw: number) {
  const sizes = rowSizes(segments);
  const total = sizes.reduce((sum, size) => sum + estimateDiskOffloadStagingBytes(size), 0);
  if (total <= usable) return [{ start: 0, end: keys.length }];
  return splitDiskOffloadLoadBatches(sizes, usable, raw).batches ?? [];
}

function metricRow({ keys, read, failed }: SeenGet, numBytes: number): JsonObject {
  const lost = read.filter((ok) => !ok).length;
  return {
    num_keys: keys.length,
    num_bytes: numBytes,
    status: failed ? "error" : lost > 0 ? "partial_failure" : "ok",
    num_failed_keys: lost,
  };
}
