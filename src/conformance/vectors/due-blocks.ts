import { saveRows } from "../../connector/worker/save-rows.js";
import { type StoreRow, segmentsOfRows } from "../../connector/worker/store-rows.js";
import { isMooncakeKvError } from "../../errors.js";
import type { ReqMeta } from "../../request/req-meta.js";
import type { DeviationName } from "./deviation.js";
import type { JsonObject, JsonValue } from "./handler.js";
import { isObject, list, object, optionalList } from "./json.js";
import { callKeys, memory } from "./worker-store.js";
import type { StepNotes, WorkerTrace } from "./worker-trace.js";

const EXISTS = "batch_is_exist";
const PUT = "batch_put_from_multi_buffers";

/** The calls of one job, with their metric rows. */
interface JobCalls {
  calls: JsonObject[];
  exists: JsonObject[];
  puts: JsonObject[];
}

/**
 * The chunks that had no source block when their job ran, request by request: vLLM's defect "offset-skip". Right is that
 * the first later job that has the block stores it.
 */
export class DueBlocks {
  readonly #trace: WorkerTrace;
  readonly #missing = new Map<string, Set<string>>();

  constructor(trace: WorkerTrace) {
    this.#trace = trace;
  }

  /**
   * The saves of a step in which a job also stores the chunks that were missing before and have a block now. They are
   * asked for with the others, in the order of groups and tokens, and put where the store does not have them.
   */
  rightSaves(note: StepNotes, step: JsonObject, record: JsonObject, names: Set<DeviationName>): JsonObject {
    let right = record;
    for (const [position, job] of note.metas.filter(({ canSave }) => canSave).entries()) {
      const plan = this.#plan(job);
      if (plan === undefined) continue;
      const asked = new Set(list<JsonObject>(right, "save_calls").flatMap((call) => callKeys(call, EXISTS)));
      const missing = this.#missing.get(job.reqId) ?? new Set<string>();
      const found = plan.rows.filter((row) => missing.has(chunkOf(row)));
      for (const row of found) missing.delete(chunkOf(row));
      const added = new Set(found.filter((row) => !asked.has(row.key)));
      if (added.size > 0) {
        names.add("offset-skip");
        right = this.#withRows(right, step, job, position, plan.rows, added, note.presentBefore);
      }
      for (const chunk of plan.missing) missing.add(chunk);
      this.#missing.set(job.reqId, missing);
    }
    for (const name of ["preempted", "finished"])
      for (const reqId of optionalList<string>(step, name) ?? []) this.#missing.delete(reqId);
    return right;
  }

  /** Everything that a job would store if nothing were stored yet, and the chunks that it has no block for. */
  #plan(
    job: ReqMeta,
  ): { readonly rows: readonly StoreRow[]; readonly missing: readonly string[] } | undefined {
    const { coordinator, groups, tpRank } = this.#trace.worker.settings;
    if (coordinator === undefined || groups === undefined) return undefined;
    const tokenLen = job.tokenLenChunk - (job.tokenLenChunk % coordinator.schedulerBlockSize);
    const { databases, replicationFactors: putSteps } = groups;
    try {
      const { rows, due } = saveRows({ coordinator, databases, putSteps, tpRank }, job, 0, tokenLen, []);
      const missing = due.flatMap((chunks, groupId) =>
        chunks.map((chunk) => `${groupId}:${chunk * databases[groupId]!.blockSize}`),
      );
      return { rows, missing };
    } catch (error) {
      if (!isMooncakeKvError(error)) throw error;
      return undefined;
    }
  }

  #withRows(
    record: JsonObject,
    step: JsonObject,
    job: ReqMeta,
    position: number,
    rows: readonly StoreRow[],
    added: ReadonlySet<StoreRow>,
    presentBefore: ReadonlySet<string>,
  ): JsonObject {
    const jobs = splitByJob(record);
    const own = new Set(rows.map(({ key }) => key));
    const at = jobs.findIndex(({ calls }) => callKeys(calls[0]!, EXISTS).some((key) => own.has(key)));
    const before = at < 0 ? undefined : jobs[at]!;
    const asked = new Set(before ? callKeys(before.calls[0]!, EXISTS) : []);
    const put = new Set((before?.calls ?? []).flatMap((call) => callKeys(call, PUT)));
    const merged = rows.filter((row) => added.has(row) || asked.has(row.key));
    const stored = merged.filter(
      (row) => put.has(row.key) || (added.has(row) && !presentBefore.has(row.key)),
    );
    const segments = segmentsOfRows(stored, this.#trace.worker.settings.groups!.databases, job.blockIds);
    const failed = programmedFailures(step, stored.length);
    const right: JobCalls = {
      calls: [{ method: EXISTS, keys: merged.map(({ key }) => key) }],
      exists: [metricRow(merged.length, 0, 0)],
      puts: [],
    };
    if (stored.length > 0) {
      const config = { replica_num: 1, with_soft_pin: false, preferred_segment: "", group_ids: [] };
      const keys = stored.map(({ key }) => key);
      right.calls.push(
        { method: "event_synchronize" },
        { method: PUT, keys, ...memory(segments), replicate_config: config },
      );
      right.puts.push(metricRow(stored.length, Number(segments.totalBytes()), failed));
    }
    if (at < 0) jobs.splice(Math.min(position, jobs.length), 0, right);
    else jobs[at] = right;
    const puts = jobs.flatMap((each) => each.puts);
    const { save_put: _, ...operations } = object(record, "operations");
    return {
      ...record,
      save_calls: jobs.flatMap(({ calls }) => calls),
      operations: {
        ...operations,
        save_exists: jobs.flatMap(({ exists }) => exists),
        ...(puts.length > 0 && { save_put: puts }),
      },
    };
  }
}

/** The calls and metric rows of a step, job by job: each begins with a question. */
function splitByJob(record: JsonObject): JobCalls[] {
  const operations = object(record, "operations");
  const exists = [...(optionalList<JsonObject>(operations, "save_exists") ?? [])];
  const puts = [...(optionalList<JsonObject>(operations, "save_put") ?? [])];
  const jobs: JobCalls[] = [];
  for (const call of list<JsonObject>(record, "save_calls")) {
    if (call["method"] === EXISTS) jobs.push({ calls: [], exists: exists.splice(0, 1), puts: [] });
    const job = jobs.at(-1)!;
    job.calls.push(call);
    if (call["method"] === PUT) job.puts.push(...puts.splice(0, 1));
  }
  return jobs;
}

/** How many of the first put's keys the step tells the store to fail. */
function programmedFailures(step: JsonObject, count: number): number {
  const program = isObject(step["program"]) ? step["program"] : {};
  const [codes] = (optionalList(program, "batch_put") ?? []) as readonly JsonValue[];
  if (codes === undefined || codes === null || typeof codes !== "object") return 0;
  return Object.entries(codes).filter(([index, code]) => Number(index) < count && Number(code) < 0).length;
}

function metricRow(numKeys: number, numBytes: number, failed: number): JsonObject {
  const status = failed > 0 ? "partial_failure" : "ok";
  return { num_keys: numKeys, num_bytes: numBytes, status, num_failed_keys: failed };
}

function chunkOf({ groupId, start }: StoreRow): string {
  return `${groupId}:${start}`;
}
