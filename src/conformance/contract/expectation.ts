import { CODE } from "../../store/shared/codes.js";
import type { JsonObject, JsonValue } from "../vectors/handler.js";
import { isObject } from "../vectors/json.js";
import { keyId } from "./keys.js";
import type { Ledger } from "./ledger.js";
import type { Observed, Read, Removed, Written } from "./observed.js";

/** The points in which this package is deliberately better than the recorded store, as reports name them. */
export type Improvement =
  | "a crash is a code"
  | "foreign memory is refused"
  | "every destination of a key is filled"
  | "of equal keys the first is stored"
  | "an upsert that does not fit keeps the old value"
  | "an upsert of no bytes is refused"
  | "later effects of these";

const RESULTS: readonly string[] = [
  "rc",
  "rcs",
  "value",
  "len",
  "data",
  "lens",
  "datas",
  "none",
  "replicas",
  "used",
  "capacity",
  "codes",
  "failed",
  "count",
  "ones",
  "zeros",
  "runs",
  "stride",
  "reads",
  "untouched",
  "tail_untouched",
  "status",
  "body",
];

/** The results that a step of the file records, without its arguments and its times. */
export function recordedResults(step: JsonObject): JsonObject {
  const results: Record<string, JsonValue> = {};
  for (const name of RESULTS) if (step[name] !== undefined) results[name] = step[name];
  return results;
}

/** What a step must give, and why that is not what was recorded. */
export interface Expected {
  readonly results: JsonObject;
  readonly improvements: ReadonlySet<Improvement>;
}

type Mutable = Record<string, JsonValue>;

/**
 * What our store must answer to a step: the recorded results, but for our improvements and their later effects. The
 * ledger is brought up to date.
 */
export function expectedOf(recorded: JsonObject, observed: Observed, ledger: Ledger, now: number): Expected {
  const results = structuredClone(recorded) as Mutable;
  const improvements = new Set<Improvement>();
  if (observed.writes) expectWrites(results, recorded, observed.writes, ledger, improvements);
  if (observed.reads) expectReads(results, recorded, observed, ledger, improvements, now);
  if (observed.removes)
    expectRemoves(results, recorded, observed, observed.removes, ledger, improvements, now);
  if (observed.sweep) {
    const surplus = ledger.sweepSurplus(observed.sweep, now);
    if (surplus !== 0 && typeof recorded["rc"] === "number" && recorded["rc"] >= 0) {
      results["rc"] = recorded["rc"] + surplus;
      improvements.add("later effects of these");
    }
    if (Number(observed.result["rc"]) >= 0) ledger.swept(observed.sweep, now);
  }
  if (results["used"] !== undefined && ledger.hasDiffered) {
    results["used"] = observed.result["used"]!;
    improvements.add("later effects of these");
  }
  return { results, improvements };
}

function expectWrites(
  results: Mutable,
  recorded: JsonObject,
  writes: readonly Written[],
  ledger: Ledger,
  improvements: Set<Improvement>,
): void {
  const last = new Map(writes.map((written, i) => [keyId(written.key), i]));
  const leading = new Map([...writes.entries()].reverse().map(([i, { key }]) => [keyId(key), i]));
  const first = new Map<string, number>();
  for (const [i, written] of writes.entries()) {
    const id = keyId(written.key);
    const code = codeAt(recorded, i);
    const alone = !first.has(id) && last.get(id) === i;
    let improved = false;
    if (written.upsert && written.size === 0 && code === CODE.OK) {
      // The recorded store says that it is done, and has changed nothing.
      improvements.add("an upsert of no bytes is refused");
      setCode(results, i, CODE.INVALID_PARAMS);
      continue;
    }
    if (written.foreign) {
      improved = code !== CODE.INVALID_PARAMS;
      if (improved) improvements.add("foreign memory is refused");
      setCode(results, i, CODE.INVALID_PARAMS);
    } else if (!alone && recorded["rcs"] !== undefined) {
      // What was recorded for all of them is the outcome of the last.
      const expected =
        written.key.length === 0 || written.size === 0
          ? CODE.INVALID_PARAMS
          : written.code === CODE.NO_AVAILABLE_HANDLE
            ? CODE.NO_AVAILABLE_HANDLE
            : 0;
      improved = expected !== code || !sameSource(writes[leading.get(id)!]!, writes[last.get(id)!]!);
      if (improved) improvements.add("of equal keys the first is stored");
      setCode(results, i, expected);
    } else if (code === CODE.NO_AVAILABLE_HANDLE && written.upsert && ledger.held(written.key)) {
      improved = true;
      improvements.add("an upsert that does not fit keeps the old value");
    }
    ledger.wrote(written, code, improved, !first.has(id));
    if (written.code === 0 && written.size > 0 && !first.has(id)) first.set(id, i);
  }
}

function sameSource(a: Written, b: Written): boolean {
  return a.size === b.size && a.data !== undefined && b.data !== undefined && a.data() === b.data();
}

function expectReads(
  results: Mutable,
  recorded: JsonObject,
  observed: Observed,
  ledger: Ledger,
  improvements: Set<Improvement>,
  now: number,
): void {
  const reads = observed.reads!;
  for (const [i, read] of reads.entries()) {
    const code = codeAt(recorded, i);
    if (ledger.differs(read.key)) {
      expectHeld(results, read, i, ledger, observed);
      improvements.add("later effects of these");
    } else if (
      read.foreign &&
      code !== undefined &&
      code !== CODE.OBJECT_NOT_FOUND &&
      code !== CODE.REPLICA_IS_NOT_READY
    ) {
      if (code !== CODE.INVALID_PARAMS) improvements.add("foreign memory is refused");
      setCode(results, i, CODE.INVALID_PARAMS);
      setRead(results, i, read.visible ? { untouched: true } : {});
    } else if (read.kind === "into" || read.kind === "value") {
      fillDestination(results, recorded, reads, i, improvements);
    }
    ledger.read(
      read.key,
      now,
      code === undefined
        ? undefined
        : code !== CODE.OBJECT_NOT_FOUND && code !== CODE.REPLICA_IS_NOT_READY && code !== 0,
    );
  }
}

/** The recorded bytes of a key that occurs again later in the call are those of an untouched buffer. */
function fillDestination(
  results: Mutable,
  recorded: JsonObject,
  reads: readonly Read[],
  index: number,
  improvements: Set<Improvement>,
): void {
  const id = keyId(reads[index]!.key);
  const alike = [...reads.keys()].filter(
    (i) => keyId(reads[i]!.key) === id && dataAt(recorded, i) !== undefined,
  );
  const right = alike.at(-1);
  if (right === undefined || !alike.includes(index) || dataAt(recorded, right) === dataAt(recorded, index))
    return;
  setData(results, index, dataAt(recorded, right)!);
  improvements.add("every destination of a key is filled");
}

/** The result of a read according to the ledger. */
function expectHeld(results: Mutable, read: Read, index: number, ledger: Ledger, observed: Observed): void {
  const held = ledger.held(read.key);
  const data = held?.data?.() ?? (held ? dataAt(observed.result, index) : undefined);
  if (read.kind === "exists") {
    setCode(results, index, held ? 1 : 0);
    if (results["runs"] !== undefined)
      for (const name of ["ones", "zeros", "runs"]) results[name] = observed.result[name]!;
  } else if (read.kind === "size") setCode(results, index, held?.size ?? CODE.OBJECT_NOT_FOUND);
  else if (read.kind === "replicas") results["replicas"] = observed.result["replicas"]!;
  else if (read.kind === "value") {
    const bytes = held?.size ?? 0;
    if (results["lens"] !== undefined) {
      (results["lens"] as JsonValue[])[index] = bytes;
      (results["datas"] as JsonValue[])[index] = data ?? EMPTY;
    } else if (held || results["none"] === undefined) {
      delete results["none"];
      results["len"] = bytes;
      results["data"] = data ?? EMPTY;
    }
  } else {
    const code = !held
      ? CODE.OBJECT_NOT_FOUND
      : read.foreign || read.capacity < held.size
        ? CODE.INVALID_PARAMS
        : read.exact && read.capacity > held.size
          ? CODE.TRANSFER_FAIL
          : held.size;
    setCode(results, index, code);
    const found: Mutable = !read.visible ? {} : code < 0 ? { untouched: true } : { data: data! };
    if (code >= 0 && read.capacity > code && read.visible) found["tail_untouched"] = true;
    setRead(results, index, found);
  }
}

const EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

function expectRemoves(
  results: Mutable,
  recorded: JsonObject,
  observed: Observed,
  removes: readonly Removed[],
  ledger: Ledger,
  improvements: Set<Improvement>,
  now: number,
): void {
  for (const [i, removed] of removes.entries()) {
    const code = codeAt(recorded, i);
    if (ledger.differs(removed.key)) {
      improvements.add("later effects of these");
      if (results["value"] !== undefined) results["value"] = observed.result["value"]!;
      else setCode(results, i, ledger.removal(removed.key, removed.force, now));
    }
    ledger.removed(removed, code);
  }
}

function codeAt(results: JsonObject, index: number): number | undefined {
  const { rcs, rc } = results as { rcs?: readonly JsonValue[] | undefined; rc?: JsonValue | undefined };
  const code = rcs ? rcs[index] : rc;
  return typeof code === "number" ? code : undefined;
}

function setCode(results: Mutable, index: number, code: number): void {
  if (Array.isArray(results["rcs"])) results["rcs"][index] = code;
  else if (results["rc"] !== undefined) results["rc"] = code;
}

function setRead(results: Mutable, index: number, read: JsonObject): void {
  if (Array.isArray(results["reads"])) results["reads"][index] = read;
  else {
    for (const name of ["data", "untouched", "tail_untouched"]) delete results[name];
    Object.assign(results, read);
  }
}

function dataAt(results: JsonObject, index: number): string | undefined {
  const { reads, datas, data } = results as {
    reads?: readonly JsonValue[] | undefined;
    datas?: readonly JsonValue[] | undefined;
    data?: JsonValue | undefined;
  };
  const found = reads
    ? isObject(reads[index])
      ? reads[index]["data"]
      : undefined
    : datas
      ? datas[index]
      : data;
  return typeof found === "string" ? found : undefined;
}

function setData(results: Mutable, index: number, data: string): void {
  if (Array.isArray(results["reads"])) (results["reads"][index] as Mutable)["data"] = data;
  else if (Array.isArray(results["datas"])) results["datas"][index] = data;
  else results["data"] = data;
}

/** Whether results are what a call gives that was refused: what must stand where the recorded store crashed. */
export function refused(results: JsonObject): boolean {
  const { rc, rcs, value, replicas, none, len, lens } = results as Record<string, JsonValue | undefined>;
  if (typeof rc === "number") return rc < 0;
  if (Array.isArray(rcs)) return rcs.every((code) => Number(code) < 0);
  if (value !== undefined) return value === "" || (Array.isArray(value) && value.length === 0);
  if (replicas !== undefined) return Object.keys(replicas as object).length === 0;
  if (none !== undefined) return none === true;
  if (lens !== undefined) return (lens as readonly JsonValue[]).every((length) => length === 0);
  return len === 0;
}
