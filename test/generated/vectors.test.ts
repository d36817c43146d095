import { readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { codecFor } from "../../generated/typescript/all-releases.js";
import {
  lookupReplyCodec,
  lookupRequestCodec,
  resetReplyCodec,
  resetRequestCodec,
} from "../../generated/typescript/index.js";
import { isMooncakeKvError } from "../../src/errors.js";
import type { Release } from "../../src/release.js";
import { fromHex, toHex } from "../../src/wire/wire.js";

// biome-ignore lint/suspicious/noExplicitAny: a vector is whatever its op says.
type Vector = any;

const SOURCES: Readonly<Record<string, Release>> = {
  "vllm-0.33.0": "vllm-0.33",
  "seed-new": "vllm-0.31",
  "seed-old": "vllm-0.27",
};

function vectors(file: string): Vector[] {
  const url = new URL(`../vectors/${file}.jsonl`, import.meta.url);
  return readFileSync(url, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

function ofOp(file: string, op: string): Vector[] {
  const found = vectors(file).filter((vector) => vector.op === op);
  assert.ok(found.length > 0, `${file} has no op ${op}`);
  return found;
}

function releasesOf({ source, same_in = [] }: Vector): Release[] {
  return [source, ...same_in].map((name: string) => SOURCES[name]!);
}

/** The JSON form keeps every field of what vLLM's object held. */
function checkUnchanged(vector: Vector, type: string, json: unknown): void {
  for (const release of releasesOf(vector)) {
    const codec = codecFor(release, type);
    const note = `${vector.id} in ${release}`;
    assert.equal(codec.toJson(codec.fromJson(json)), json, note);
    assert.equal(codec.toJson(codec.fromMessagePack(codec.toMessagePack(codec.fromJson(json)))), json, note);
  }
}

/** The same for a vector that lists only some of the fields. */
function checkKept(vector: Vector, type: string, fields: Record<string, unknown>): void {
  for (const release of releasesOf(vector)) {
    const codec = codecFor(release, type);
    const json = codec.toJson(codec.fromJson(fields)) as Record<string, unknown>;
    for (const [name, value] of Object.entries(fields))
      assert.equal(json[name], value, `${vector.id} ${name}`);
  }
}

const boundaries = (pairs: [number, number][]) =>
  pairs.map(([groupId, numTokens]) => ({ groupId, numTokens }));

test("lookup_wire: replies are encoded and decoded as vLLM does", () => {
  for (const { id, input, expected } of ofOp("lookup_wire", "encode_response")) {
    const { hit_length: hitLength, tail_key_boundaries: tail } = input;
    if (!expected) continue;
    const frame = lookupReplyCodec.toBinary({ hitLength, tailKeyBoundaries: boundaries(tail) });
    assert.is(toHex(frame), expected.bytes, id);
  }
  for (const { id, input, expected, error } of ofOp("lookup_wire", "decode_response")) {
    const decode = () => lookupReplyCodec.fromBinary(fromHex(input.bytes));
    if (error) assert.throws(decode, (thrown: unknown) => isMooncakeKvError(thrown, "ERR_SCHEMA"), id);
    else
      assert.equal(
        decode(),
        { hitLength: expected.hit_length, tailKeyBoundaries: boundaries(expected.tail_key_boundaries) },
        id,
      );
  }
});

test("lookup_wire: values that vLLM can't encode are refused", () => {
  for (const { id, input } of ofOp("lookup_wire", "encode_response").filter((vector) => vector.error)) {
    const { hit_length: hitLength, tail_key_boundaries: tail } = input;
    assert.throws(
      () => lookupReplyCodec.toBinary({ hitLength, tailKeyBoundaries: boundaries(tail) }),
      (thrown: unknown) => isMooncakeKvError(thrown, "ERR_SCHEMA"),
      id,
    );
  }
});

test("lookup_wire: a client's frames are vLLM's", () => {
  for (const { id, input, expected } of ofOp("lookup_wire", "client_lookup")) {
    const hashes: string[] = input.block_hashes;
    const request = {
      numTokens: input.num_tokens,
      hashLen: (hashes[0] ?? "").length / 2,
      blockHashes: fromHex(hashes.join("")),
    };
    if (expected.request_frames === null) {
      assert.throws(
        () => lookupRequestCodec.toBinary(request),
        (thrown: unknown) => isMooncakeKvError(thrown, "ERR_SCHEMA"),
        id,
      );
      continue;
    }
    const frames = lookupRequestCodec.toBinary(request);
    assert.equal(frames.map(toHex), expected.request_frames, id);
    assert.equal(lookupRequestCodec.fromBinary(frames), request, id);
  }
  for (const { id, input, expected } of ofOp("lookup_wire", "client_reset")) {
    assert.equal([toHex(resetRequestCodec.toBinary({}))], expected.request_frames, id);
    assert.is(wasReset(input.reply), expected.result, id);
  }
});

/** vLLM's client takes whatever is no "ok" for a failure. */
function wasReset(reply: string | null): boolean {
  try {
    return resetReplyCodec.fromBinary(fromHex(reply ?? "")).ok;
  } catch {
    return false;
  }
}

test("lookup_wire: a lenient reader takes what vLLM's server takes", () => {
  for (const { id, input, expected } of ofOp("lookup_wire", "server")) {
    const call = expected.worker_calls.find(([name]: [string]) => name === "lookup");
    const decode = () => lookupRequestCodec.fromBinary(input.request_frames.map(fromHex), { lenient: true });
    if (!call) assert.throws(decode, (thrown: unknown) => isMooncakeKvError(thrown, "ERR_SCHEMA"), id);
    else {
      const { numTokens, hashLen, blockHashes } = decode();
      assert.is(numTokens, call[1], id);
      const count = hashLen === 0 ? 0 : Math.floor(blockHashes.length / hashLen);
      const hashes = Array.from({ length: count }, (_, index) =>
        toHex(blockHashes.subarray(index * hashLen, (index + 1) * hashLen)),
      );
      assert.equal(hashes, call[2], id);
    }
  }
});

test("request: trackers keep every field", () => {
  for (const op of ["tracker", "tracker_reset"])
    for (const vector of ofOp("request", op)) checkUnchanged(vector, "RequestTracker", vector.expected);
  for (const op of ["tracker_update", "save_sequence"])
    for (const vector of ofOp("request", op))
      if (vector.expected) checkKept(vector, "RequestTracker", vector.expected.tracker);
});

test("request: every ReqMeta keeps every field", () => {
  const metas = ofOp("request", "from_request_tracker").filter((vector) => vector.expected?.meta);
  assert.ok(metas.length > 0);
  for (const vector of metas) checkUnchanged(vector, "ReqMeta", vector.expected.meta);
});

test("request: records have the defaults of their release", () => {
  for (const vector of ofOp("request", "record")) {
    const { class: type, fields } = vector.input;
    for (const release of releasesOf(vector)) {
      const codec = codecFor(release, type);
      // A NamedTuple and an empty dict: as fields in the vector, as a list on our wire.
      const asTuple = type === "BoundaryPut";
      const expected =
        type === "MooncakeStoreWorkerMetadata"
          ? { completed_saves: [] }
          : asTuple
            ? Object.values(fields)
            : vector.expected;
      const given = asTuple ? Object.values(fields) : fields;
      assert.equal(codec.toJson(codec.fromJson(given)), expected, vector.id);
    }
  }
});

test("keys: KeyMetadata has the defaults of its release", () => {
  for (const vector of ofOp("keys", "key_metadata"))
    for (const release of releasesOf(vector)) {
      const codec = codecFor(release, "KeyMetadata");
      assert.equal(codec.toJson(codec.fromJson(vector.input)), vector.expected, vector.id);
      checkUnchanged(vector, "KeyMetadata", vector.expected);
    }
});

test("request: connector and worker metadata keep sets and maps in their order", () => {
  for (const vector of ofOp("request", "connector_metadata")) {
    const { unfinished_request_ids, preempted_req_ids } = vector.input;
    checkUnchanged(vector, "MooncakeStoreConnectorMetadata", {
      requests: [],
      unfinished_request_ids,
      preempted_req_ids,
    });
  }
  for (const vector of ofOp("request", "aggregate"))
    checkUnchanged(vector, "MooncakeStoreWorkerMetadata", {
      completed_saves: vector.expected.completed_saves,
    });
});

test.run();
