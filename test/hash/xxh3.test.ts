import { register } from "node:module";
import { MessageChannel } from "node:worker_threads";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { BlockHasher } from "../../src/hash/index.js";
import { loadXxh3 } from "../../src/hash/xxh3.js";

// A package that can't be loaded at first, as while it is being installed: the hook says so when a port tells it to.

const HOOK = `
let missing = true;
export async function initialize({ port }) {
  port.on("message", (value) => {
    missing = value;
    port.postMessage("done");
  });
}
export async function resolve(specifier, context, next) {
  if (specifier !== "hash-wasm" || !missing) return next(specifier, context);
  throw Object.assign(new Error("Cannot find package hash-wasm"), { code: "ERR_MODULE_NOT_FOUND" });
}`;
const { port1, port2 } = new MessageChannel();
register(`data:text/javascript,${encodeURIComponent(HOOK)}`, {
  data: { port: port2 },
  transferList: [port2],
});

test("a load that failed is tried again by the next call, and one that worked is not", async () => {
  const failures = await Promise.allSettled([loadXxh3(), loadXxh3()]);
  for (const { status } of failures) assert.is(status, "rejected");
  const told = new Promise((resolve) => port1.once("message", resolve));
  port1.postMessage(false);
  await told;
  const digest = await loadXxh3();
  assert.is(Buffer.from(digest(new Uint8Array(0))).toString("hex"), "99aa06d3014798d86001c324468d497f");
  assert.is(loadXxh3(), loadXxh3());
  const hasher = await BlockHasher.create({
    blockSize: 4,
    algorithm: "xxhash",
    seed: "0",
    rootSharing: "private",
  });
  assert.is(hasher.hash([1, 2, 3, 4]).length, 1);
  port1.close();
});

test.run();
