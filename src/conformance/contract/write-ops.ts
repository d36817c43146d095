import { CODE } from "../../store/shared/codes.js";
import type { Place } from "./client-memory.js";
import { keyBytes, keyId, keyList } from "./keys.js";
import type { ClientOp, Member, StepContext } from "./member.js";
import type { Observed } from "./observed.js";
import { pattern, sha256 } from "./pattern.js";
import type { Source } from "./python-calls.js";
import { putOptions } from "./replicate-config.js";
import type { ContractStep } from "./scenario.js";
import { fillPlace, offsetList, pairs, segmentRows, sizeList } from "./step-arguments.js";
import { ownBytes, writtenRow } from "./step-results.js";

/** The ops that store objects. */
export const WRITE_OPS: Readonly<Record<string, ClientOp>> = {
  put_from: (step, member, context) => putFrom(step, member, context, false),
  upsert_from: (step, member, context) => putFrom(step, member, context, true),
  put: (step, member, context) => put(step, member, context, false),
  upsert: (step, member, context) => put(step, member, context, true),
  put_parts: async (step, { calls }, context) => {
    const parts = pairs(step["parts"]).map(([seed, size]) => pattern(seed, size));
    const key = keyBytes(step["key"]);
    const size = parts.reduce((sum, { length }) => sum + length, 0);
    await context.moved(size);
    const code = await calls.putParts(key, parts);
    return { result: { rc: code }, writes: [ownBytes(key, size, () => sha256(...parts), code)] };
  },
  put_batch: async (step, { calls }) => {
    const keys = keyList(step["keys"]);
    const values = pairs(step["values"]).map(([seed, size]) => pattern(seed, size));
    const code = await calls.putBatch(keys, values);
    // One code for all: the objects that one of the others kept out are found out by later steps.
    const writes =
      keys.length === values.length && values.every(({ length }) => length > 0)
        ? keys.map((key, i) =>
            ownBytes(
              key,
              values[i]!.length,
              () => sha256(values[i]!),
              key.length === 0 ? CODE.INVALID_PARAMS : code === CODE.INVALID_PARAMS ? 0 : code,
            ),
          )
        : [];
    return { result: { rc: code }, writes };
  },
  batch_put_from: (step, member, context) => batchPutFrom(step, member, context, false),
  batch_upsert_from: (step, member, context) => batchPutFrom(step, member, context, true),
  batch_put_from_multi_buffers: async (step, member, context) => {
    const keys = keyList(step["keys"]);
    const rows = segmentRows(step, member.memory, false);
    if (!member.client.store) return { result: { rcs: [] } };
    if (!rows || rows.length !== keys.length) return { result: { rcs: keys.map(() => CODE.INVALID_PARAMS) } };
    const seed = step["fill"];
    let next = Number(seed);
    if (seed !== undefined) for (const place of rows.flat()) fillPlace(place, next++);
    return writeRows(step, member, context, keys, rows, false, seed !== undefined);
  },
};

async function putFrom(
  step: ContractStep,
  member: Member,
  context: StepContext,
  upsert: boolean,
): Promise<Observed> {
  const key = keyBytes(step["key"]);
  const place = member.memory.place(step["off"], Number(step["size"]));
  if (step["fill"] !== undefined) fillPlace(place, Number(step["fill"]));
  await context.moved(place.size);
  const code = await member.calls.putFrom({ key, places: [place] }, putOptions(step["config"]), upsert);
  const written = writtenRow(key, [place], member.memory, upsert, code);
  return { result: { rc: code }, writes: [written] };
}

async function put(
  step: ContractStep,
  { calls }: Member,
  context: StepContext,
  upsert: boolean,
): Promise<Observed> {
  const key = keyBytes(step["key"]);
  const size = Number(step["size"]);
  const seed = Number(step["fill"]);
  await context.moved(size);
  const code = await calls.put(key, pattern(seed, size), putOptions(step["config"]), upsert);
  const written = ownBytes(key, size, () => sha256(pattern(seed, size)), code);
  return { result: { rc: code }, writes: [{ ...written, upsert }] };
}

async function batchPutFrom(
  step: ContractStep,
  member: Member,
  context: StepContext,
  upsert: boolean,
): Promise<Observed> {
  const keys = keyList(step["keys"]);
  const offsets = offsetList(step["offs"], keys.length);
  const sizes = sizeList(step["sizes"], keys.length);
  if (offsets.length !== keys.length || sizes.length !== keys.length)
    return { result: { rcs: keys.map(() => CODE.INVALID_PARAMS) } };
  const rows = keys.map((_, i) => [member.memory.place(offsets[i], sizes[i]!)]);
  if (step["fill"] !== undefined)
    for (const [i, [place]] of rows.entries()) fillPlace(place!, Number(step["fill"]) + i);
  return writeRows(step, member, context, keys, rows, upsert, step["fill"] !== undefined);
}

async function writeRows(
  step: ContractStep,
  { calls, memory }: Member,
  context: StepContext,
  keys: readonly Uint8Array[],
  rows: readonly (readonly Place[])[],
  upsert: boolean,
  filled: boolean,
): Promise<Observed> {
  const sources: Source[] = keys.map((key, i) => ({ key, places: rows[i]! }));
  await context.moved(rows.flat().reduce((sum, { size }) => sum + size, 0));
  const rcs = await calls.batchPutFrom(sources, putOptions(step["config"]), upsert);
  const alike = new Set(keys.map(keyId)).size < keys.length;
  const writes = keys.map((key, i) =>
    writtenRow(key, rows[i]!, memory, upsert, rcs[i]!, filled || alike || keys.length < 16),
  );
  return { result: { rcs }, writes };
}
