import { keyBytes, keyList } from "./keys.js";
import type { ClientOp } from "./member.js";

/** The ops that remove objects. */
export const REMOVE_OPS: Readonly<Record<string, ClientOp>> = {
  batch_replica_clear: async (step, { calls }) => {
    const keys = keyList(step["keys"]);
    const codes = await calls.remove(keys, false);
    const value = keys.filter((_, i) => codes[i] === 0).map((key) => Buffer.from(key).toString());
    return { result: { value }, removes: keys.map((key, i) => ({ key, force: false, code: codes[i]! })) };
  },
  remove: async (step, { calls }) => {
    const key = keyBytes(step["key"]);
    const force = step["force"] === true;
    const [code] = await calls.remove([key], force);
    return { result: { rc: code! }, removes: [{ key, force, code: code! }] };
  },
  batch_remove: async (step, { calls }) => {
    const keys = keyList(step["keys"]);
    const force = step["force"] === true;
    const rcs = await calls.remove(keys, force);
    return { result: { rcs }, removes: keys.map((key, i) => ({ key, force, code: rcs[i]! })) };
  },
  remove_all: async (step, { calls }) => {
    const force = step["force"] === true;
    return { result: { rc: await calls.removeAll(force) }, sweep: { force, pattern: undefined } };
  },
  remove_by_regex: async (step, { calls }) => {
    const force = step["force"] === true;
    const regex = String(step["regex"]);
    return { result: { rc: await calls.removeByRegex(regex, force) }, sweep: { force, pattern: regex } };
  },
};
