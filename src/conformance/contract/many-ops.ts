import { CODE } from "../../store/shared/codes.js";
import { keyId, numberedKeys } from "./keys.js";
import type { ClientOp, Member, StepContext } from "./member.js";
import type { Observed } from "./observed.js";
import { putOptions } from "./replicate-config.js";
import type { ContractStep } from "./scenario.js";

/** The ops that put many objects, and look at what becomes of them. */
export const MANY_OPS: Readonly<Record<string, ClientOp>> = {
  put_until: putUntil,
  put_n: putMany,
  put_codes: putCodes,
  alloc_stride: stride,
};

async function putUntil(step: ContractStep, member: Member, context: StepContext): Promise<Observed> {
  const size = Number(step["size"]);
  const batch = Number(step["batch"] ?? 1);
  const most = Number(step["max"]);
  const place = member.memory.place(step["off"], size);
  let count = 0;
  for (let start = 0; start < most; start += batch) {
    const keys = numberedKeys(String(step["prefix"]), start, Math.min(batch, most - start));
    await context.moved(size * keys.length);
    const sources = keys.map((key) => ({ key, places: [place] }));
    const codes = await member.calls.batchPutFrom(sources, putOptions(step["config"]));
    count += codes.filter((code) => code === 0).length;
    const failed = codes.find((code) => code !== 0);
    if (failed !== undefined) return { result: { count, rc: failed } };
  }
  return { result: { count, rc: 0 } };
}

async function putMany(
  step: ContractStep,
  { memory, calls }: Member,
  context: StepContext,
): Promise<Observed> {
  const size = Number(step["size"]);
  const place = memory.place(step["off"], size);
  const codes = new Map<string, number>();
  const failed: number[] = [];
  for (const [i, key] of numberedKeys(String(step["prefix"]), 0, Number(step["n"])).entries()) {
    let code = -1;
    for (let attempt = 0; attempt <= Number(step["retries"] ?? 0); attempt++) {
      if (attempt > 0) await context.sleep(Number(step["retry_ms"] ?? 5));
      await context.moved(size);
      code = await calls.putFrom({ key, places: [place] }, putOptions(step["config"]), false);
      if (code !== CODE.NO_AVAILABLE_HANDLE) break;
    }
    codes.set(String(code), (codes.get(String(code)) ?? 0) + 1);
    if (code !== 0) failed.push(i);
    if (step["pause_ms"] !== undefined) await context.sleep(Number(step["pause_ms"]));
  }
  return { result: { codes: Object.fromEntries(codes), failed } };
}

async function putCodes(
  step: ContractStep,
  { memory, calls }: Member,
  context: StepContext,
): Promise<Observed> {
  const size = Number(step["size"]);
  const count = Number(step["segs"] ?? 1);
  const row = Array.from({ length: count }, (_, i) => memory.place(i * size, size));
  const sources = numberedKeys(String(step["prefix"]), 0, Number(step["n"])).map((key) => ({
    key,
    places: row,
  }));
  await context.moved(size * count * sources.length);
  const codes = new Map<string, number>();
  for (const code of await calls.batchPutFrom(sources, {}))
    codes.set(String(code), (codes.get(String(code)) ?? 0) + 1);
  return { result: { codes: Object.fromEntries(codes) } };
}

async function stride(step: ContractStep, { memory, calls }: Member): Promise<Observed> {
  const keys = numberedKeys(String(step["prefix"]), 0, 2);
  const place = memory.place(0, Number(step["size"]));
  const codes = await calls.batchPutFrom(
    keys.map((key) => ({ key, places: [place] })),
    {},
  );
  const found = await calls.replicas(keys);
  const [first, second] = keys.map((key) => found.get(keyId(key))?.[0]?.address);
  await calls.remove(keys, true);
  const rc = codes.find((code) => code !== 0) ?? 0;
  if (first === undefined || second === undefined) return { result: { rc } };
  return { result: { rc, stride: Number(second > first ? second - first : first - second) } };
}
