import { CODE } from "../../store/shared/codes.js";
import type { JsonObject, JsonValue } from "../vectors/handler.js";
import type { Place } from "./client-memory.js";
import { keyBytes, keyId, keyList } from "./keys.js";
import type { ClientOp, Member } from "./member.js";
import type { Read } from "./observed.js";
import { sha256 } from "./pattern.js";
import { clear, offsetList, segmentRows, sizeList } from "./step-arguments.js";
import { intoRead, plainRead, readOf, replicaJson, summary, untouched } from "./step-results.js";

/** The ops that read objects or look for them. */
export const READ_OPS: Readonly<Record<string, ClientOp>> = {
  get_into: async (step, member) => {
    const place = member.memory.place(step["off"], Number(step["size"]));
    const { rcs, reads, touched } = await getInto(member, [keyBytes(step["key"])], [place]);
    return { result: { rc: rcs[0]!, ...reads[0] }, reads: touched };
  },
  batch_get_into: async (step, member) => {
    const keys = keyList(step["keys"]);
    const offsets = offsetList(step["offs"], keys.length);
    const sizes = sizeList(step["sizes"], keys.length);
    const count = Math.min(keys.length, offsets.length, sizes.length);
    const places = Array.from({ length: count }, (_, i) => member.memory.place(offsets[i], sizes[i]!));
    if (offsets.length !== keys.length || sizes.length !== keys.length)
      return { result: { rcs: keys.map(() => CODE.INVALID_PARAMS), reads: untouched(places) } };
    const { rcs, reads, touched } = await getInto(member, keys, places);
    return { result: { rcs, reads }, reads: touched };
  },
  batch_get_into_multi_buffers: async (step, member) => {
    const keys = keyList(step["keys"]);
    const rows = segmentRows(step, member.memory, true);
    if (!rows || rows.length !== keys.length) {
      const shown = (rows ?? segmentRows({ ...step, all_sizes: null }, member.memory, true) ?? []).slice(
        0,
        keys.length,
      );
      return {
        result: { rcs: keys.map(() => CODE.INVALID_PARAMS), reads: shown.map(() => ({ untouched: true })) },
      };
    }
    clear(rows.flat());
    const rcs = await member.calls.batchGetIntoMultiBuffers(keys, rows);
    return {
      result: { rcs, reads: rows.map((row, i) => readOf(row, rcs[i]!)) },
      reads: keys.map((key, i) => intoRead(key, rows[i]!, member.memory, true)),
    };
  },
  get: async (step, { calls }) => {
    const key = keyBytes(step["key"]);
    const [value = new Uint8Array(0)] = await calls.get([key]);
    return { result: { len: value.length, data: sha256(value) }, reads: [plainRead(key, "value")] };
  },
  get_buffer: async (step, { calls }) => {
    const key = keyBytes(step["key"]);
    const [value] = await calls.get([key]);
    return {
      result: value ? { len: value.length, data: sha256(value) } : { none: true },
      reads: [plainRead(key, "value")],
    };
  },
  get_batch: async (step, { calls }) => {
    const keys = keyList(step["keys"]);
    const values = (await calls.get(keys)).map((value) => value ?? new Uint8Array(0));
    // The Python client answers an empty batch with one empty value.
    if (keys.length === 0) values.push(new Uint8Array(0));
    return {
      result: { lens: values.map(({ length }) => length), datas: values.map((value) => sha256(value)) },
      reads: keys.map((key) => plainRead(key, "value")),
    };
  },
  get_size: async (step, { calls }) => {
    const key = keyBytes(step["key"]);
    return { result: { rc: await calls.size(key) }, reads: [plainRead(key, "size")] };
  },
  is_exist: async (step, { calls }) => {
    const key = keyBytes(step["key"]);
    return { result: { rc: (await calls.exists([key]))[0]! }, reads: [plainRead(key, "exists")] };
  },
  batch_is_exist: async (step, { calls }) => {
    const keys = keyList(step["keys"]);
    const rcs = await calls.exists(keys);
    const reads = keys.map((key) => plainRead(key, "exists"));
    return { result: step["summary"] === undefined ? { rcs } : summary(rcs), reads };
  },
  replica_desc: async (step, { calls }) => {
    const key = keyBytes(step["key"]);
    const found = (await calls.replicas([key])).get(keyId(key)) ?? [];
    return { result: { replicas: found.map(replicaJson) }, reads: [plainRead(key, "replicas")] };
  },
  batch_replica_desc: async (step, { calls }) => {
    const keys = keyList(step["keys"]);
    const found = await calls.replicas(keys);
    const replicas: Record<string, JsonValue> = {};
    for (const key of keys) {
      const list = found.get(keyId(key));
      if (list) replicas[Buffer.from(key).toString()] = list.map(replicaJson);
    }
    return { result: { replicas }, reads: keys.map((key) => plainRead(key, "replicas")) };
  },
};

async function getInto(
  member: Member,
  keys: readonly Uint8Array[],
  places: readonly Place[],
): Promise<{ rcs: number[]; reads: JsonObject[]; touched: Read[] }> {
  clear(places);
  const rcs = await member.calls.batchGetInto(keys, places);
  return {
    rcs,
    reads: places.map((place, i) => readOf([place], rcs[i]!)),
    touched: keys.map((key, i) => intoRead(key, [places[i]!], member.memory, false)),
  };
}
