import { MooncakeKvError } from "../../errors.js";
import type { Release } from "../../release.js";
import { BoundaryPut } from "../../request/boundary-put.js";
import { MooncakeStoreConnectorMetadata } from "../../request/connector-metadata.js";
import { createLoadSpec, type LoadSpec, type LoadSpecInit } from "../../request/load-spec.js";
import { type FromRequestTrackerOptions, ReqMeta, type ReqMetaInit } from "../../request/req-meta.js";
import { RequestTracker, type RequestTrackerInit } from "../../request/request-tracker.js";
import { createLookupResult, TailKeyBoundary } from "../../request/tail-key-boundary.js";
import { MooncakeStoreWorkerMetadata } from "../../request/worker-metadata.js";
import type { JsonObject, JsonValue, VectorHandlers } from "./handler.js";
import { bytes, hex, list, number, object, optionalList, outcome, text } from "./json.js";

/** Members of a job that `save_sequence` leaves out. */
const NOT_IN_SEQUENCES: ReadonlySet<string> = new Set([
  "req_id",
  "block_hashes",
  "current_event",
  "store_job_id",
  "partial_tail_offloads",
  "boundary_state_offloads",
  "boundary_puts",
]);

/** The members of a vector object under the SDK's names; nothing below them is renamed. */
function camelFields(input: JsonObject): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(input).map(([name, value]) => [
      name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      value,
    ]),
  );
}

/** A value of the SDK as a vector writes it. */
function plain(value: unknown): JsonValue {
  if (value instanceof Uint8Array) return hex(value);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value as JsonValue;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      plain(member),
    ]),
  );
}

function readBoundary(input: JsonObject): TailKeyBoundary {
  return new TailKeyBoundary(number(input, "group_id"), number(input, "num_tokens"));
}

function readBoundaries(input: JsonObject): TailKeyBoundary[] | undefined {
  return optionalList<JsonObject>(input, "tail_key_boundaries")?.map(readBoundary);
}

function readLoadSpec<R extends Release>(input: JsonObject, release: R): LoadSpec<R> {
  const tailKeyBoundaries = readBoundaries(input);
  const fields = { ...camelFields(input), ...(tailKeyBoundaries && { tailKeyBoundaries }) };
  return createLoadSpec(fields as unknown as LoadSpecInit<R>, release);
}

function readTracker(input: JsonObject): RequestTracker {
  return new RequestTracker(camelFields(input) as unknown as RequestTrackerInit);
}

/** All fields of a tracker; `partial_tail_sent` only where the release has it. */
function writeTracker(tracker: RequestTracker, withTail: boolean): JsonObject {
  const { partial_tail_sent, ...fields } = plain(tracker) as JsonObject;
  return withTail ? { ...fields, partial_tail_sent: partial_tail_sent! } : fields;
}

function hasTail(release: Release): boolean {
  return release === "vllm-0.33";
}

/** The options of one step; members that are not options are left out. */
function readStep(
  input: JsonObject,
  blockSize: number,
  release: Release,
): FromRequestTrackerOptions<Release> {
  const { tracker, addTokens, appendBlocks, tokenIds, ...options } = camelFields(input);
  const loadSpec = input["load_spec"] == null ? null : readLoadSpec(object(input, "load_spec"), release);
  const blockHashes = optionalList<string>(input, "block_hashes")?.map(bytes);
  return { ...options, blockSize, loadSpec, blockHashes } as FromRequestTrackerOptions<Release>;
}

function readMeta(input: JsonObject, release: Release): ReqMetaInit<Release> {
  const loadSpec = input["load_spec"] == null ? null : readLoadSpec(object(input, "load_spec"), release);
  return { ...camelFields(input), loadSpec } as unknown as ReqMetaInit<Release>;
}

function writeMeta(meta: ReqMeta<Release> | null): JsonObject | null {
  return meta && { ...(plain(meta) as JsonObject), current_event: null };
}

function fromRequestTracker(input: JsonObject, release: Release): JsonValue {
  const tracker = readTracker(object(input, "tracker"));
  const options = readStep(input, number(input, "block_size"), release);
  const meta = writeMeta(ReqMeta.fromRequestTracker<Release>(tracker, options, release));
  return {
    meta,
    tracker_after: {
      num_saved_tokens: tracker.numSavedTokens,
      ...(hasTail(release) && { partial_tail_sent: tracker.partialTailSent }),
    },
  };
}

function saveSequence(input: JsonObject, release: Release): JsonValue {
  const tracker = readTracker(object(input, "tracker"));
  const metas = list<JsonObject>(input, "steps").map((step) => {
    tracker.tokenLen += number(step, "add_tokens");
    tracker.update(list<readonly number[] | null>(step, "append_blocks"));
    const tokenIds = optionalList<number>(step, "token_ids");
    if (tokenIds) tracker.tokenIds = [...(tracker.tokenIds ?? []), ...tokenIds];
    const options = readStep(step, number(input, "block_size"), release);
    const meta = writeMeta(ReqMeta.fromRequestTracker<Release>(tracker, options, release));
    return meta && Object.fromEntries(Object.entries(meta).filter(([name]) => !NOT_IN_SEQUENCES.has(name)));
  });
  return { metas, tracker: writeTracker(tracker, hasTail(release)) };
}

function trackerUpdate(input: JsonObject): JsonValue {
  const tracker = readTracker(object(input, "tracker"));
  if (input["reset_first"] === true) tracker.reset();
  const lists = [...tracker.allocatedBlockIds];
  const blocks = object(input, "new_block_ids");
  // vLLM also takes one bare list, for a single group.
  const groups =
    blocks["kind"] === "list" ? [list<number>(blocks, "value")] : list<readonly number[]>(blocks, "value");
  const result = outcome(() => {
    tracker.update(groups);
    return {
      lists_extended_in_place: lists.every((each, group) => tracker.allocatedBlockIds[group] === each),
    };
  });
  return { tracker: writeTracker(tracker, false), ...(result as JsonObject) };
}

function record(input: JsonObject, release: Release): JsonValue {
  const fields = object(input, "fields");
  switch (text(input, "class")) {
    case "LoadSpec":
      return plain(readLoadSpec(fields, release));
    case "MooncakeLookupResult":
      return plain(createLookupResult(number(fields, "hit_length"), readBoundaries(fields)));
    case "TailKeyBoundary":
      return plain(readBoundary(fields));
    case "BoundaryPut":
      return plain(
        new BoundaryPut(number(fields, "group_id"), number(fields, "block_id"), number(fields, "num_tokens")),
      );
    case "ReqMeta":
      return writeMeta(ReqMeta.create(readMeta(fields, release), release));
    case "MooncakeStoreWorkerMetadata":
      return { completed_saves: Object.fromEntries(new MooncakeStoreWorkerMetadata().completedSaves) };
    default:
      throw new TypeError(`unknown class ${input["class"]}`);
  }
}

function assignToBoundary(input: JsonObject): JsonValue {
  const boundary = readBoundary(input);
  try {
    return plain(Object.assign(boundary, camelFields(object(input, "assign"))));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new MooncakeKvError("ERR_REQUEST", error.message, {}, { cause: error });
  }
}

function connectorMetadata(input: JsonObject): JsonValue {
  const metadata = new MooncakeStoreConnectorMetadata(
    list<string>(input, "unfinished_request_ids"),
    list<string>(input, "preempted_req_ids"),
  );
  const before = metadata.requests.length;
  const returned = list<string>(input, "add").map((reqId) =>
    metadata.addRequest(ReqMeta.create({ reqId, tokenLenChunk: 0, blockIds: [], blockHashes: [] })),
  );
  return {
    before,
    requests: metadata.requests.map(({ reqId }) => reqId),
    unfinished_request_ids: [...metadata.unfinishedRequestIds],
    preempted_req_ids: [...metadata.preemptedReqIds],
    add_returns: returned.some((value) => value !== undefined) ? "something" : null,
    is_connector_metadata: metadata instanceof MooncakeStoreConnectorMetadata,
  };
}

function aggregate(input: JsonObject): JsonValue {
  const reports = list<readonly (readonly [number, number])[]>(input, "metas").map(
    (completedSaves) => new MooncakeStoreWorkerMetadata(completedSaves),
  );
  const [first, ...others] = reports as [MooncakeStoreWorkerMetadata, ...MooncakeStoreWorkerMetadata[]];
  const operands = input["self"] === true ? [first] : others;
  const results = operands.map((other) => first.aggregate(other));
  return {
    completed_saves: [...first.completedSaves],
    returns_first: results.every((result) => result === first),
    others: others.map(({ completedSaves }) => [...completedSaves]),
  };
}

/** What Python's sample of the class shows: it is a tuple, equal to and ordered like one. */
function boundaryPut(): JsonValue {
  const put = new BoundaryPut(1, 7, 12);
  const puts = [new BoundaryPut(1, 2, 3), new BoundaryPut(1, 1, 99), new BoundaryPut(0, 9, 9)];
  return {
    as_tuple: put.toTuple(),
    equals_plain_tuple: put.equals(new BoundaryPut(...put.toTuple())),
    ordered: puts.sort(BoundaryPut.compare).map((each) => each.toTuple()),
  };
}

/** The ops of request.jsonl. */
export const requestHandlers: VectorHandlers = {
  tracker: (input, { release }) => writeTracker(readTracker(input), hasTail(release)),
  tracker_reset: (input, { release }) => {
    const tracker = readTracker(input);
    tracker.reset();
    return writeTracker(tracker, hasTail(release));
  },
  tracker_update: trackerUpdate,
  from_request_tracker: (input, { release }) => fromRequestTracker(input, release),
  save_sequence: (input, { release }) => saveSequence(input, release),
  record: (input, { release }) => record(input, release),
  tail_key_boundary_assign: assignToBoundary,
  tail_key_boundary_equality: (input) => {
    const [a, b] = [readBoundary(object(input, "a")), readBoundary(object(input, "b"))];
    return { eq: a.equals(b), set_size: new Set([a.identity, b.identity]).size };
  },
  boundary_put: boundaryPut,
  connector_metadata: connectorMetadata,
  aggregate,
  aggregate_other_type: () => {
    const other = new MooncakeStoreConnectorMetadata([], []);
    return plain(
      new MooncakeStoreWorkerMetadata().aggregate(other as unknown as MooncakeStoreWorkerMetadata),
    );
  },
};
