import { test } from "uvu";
import * as assert from "uvu/assert";
import { ownLibrary } from "./own-library.js";
import { runScript } from "./run-script.js";

// What was measured of the real library, imitated by our own on request (native/capi/imitation.h).

const run = (imitate: string, script: string): ReturnType<typeof runScript> =>
  runScript(ownLibrary(), script, { MOONCAKE_KV_IMITATE: imitate });
const segment = "{ globalSegmentSize: '16MiB' }";

test("create blocks signals: this process gets its own all the same", async () => {
  const { code, output } = await run(
    "signals",
    `const store = await open();
     process.on("SIGINT", async () => { await store.close(); process.exit(5); });
     setTimeout(() => process.kill(process.pid, "SIGINT"), 20);
     setTimeout(() => process.exit(6), 5000);`,
  );
  assert.is(code, 5, output);
});

test("bad strings end the process in the library: they never get there", async () => {
  const { code, output } = await run(
    "abort",
    `for (const options of [{ metadataServer: "nonsense" }, { master: "" }, { metadataServer: "etcd://x" }, { master: "etcd://x" }])
       await open(options).then(() => console.log("opened"), (error) => console.log(error.code));
     const store = await open();
     console.log((await store.exists(["k"])).codes[0]);
     await store.close();`,
  );
  assert.is(code, 0, output);
  assert.is(output, `${"ERR_CONFIG\n".repeat(4)}0\n`);
});

test("setup takes minutes: opening takes its deadline", async () => {
  const { code, output, ms } = await run(
    "setup-delay=6000",
    `console.log("start");
     await open({ openDeadlineMs: 200 }).catch((error) => console.log(error.code, error.message));`,
  );
  assert.is(code, 0, output);
  assert.match(output, /ERR_STORE .*master m:1 can't be joined: there was no answer within 200 ms/);
  assert.ok(ms < 5_500, `${ms} ms`);
});

test("every call takes seconds: it costs its deadline", async () => {
  const { code, output, ms } = await run(
    "delay=4000",
    `const store = await open(${segment});
     console.log("start");
     const value = [new Uint8Array(10)];
     const results = await Promise.all([
       store.exists(["k"], { deadlineMs: 100 }), store.put(["k"], value, { deadlineMs: 100 }),
       store.get(["k"], { deadlineMs: 100 }), store.remove(["k"], { deadlineMs: 100 })]);
     console.log(results.map(({ codes }) => Number(codes[0])).join());
     console.log((await store.health({ deadlineMs: 100 })).code, store.hangingCalls > 0);`,
  );
  assert.is(code, 0, output);
  assert.match(output, /-901,-901,-901,-901\n2 true/);
  assert.ok(ms < 12_000, `${ms} ms`);
});

test("the master is dead, and the library's own health check says 0: health knows better", async () => {
  const { code, output } = await run(
    "unreachable",
    `const store = await open();
     const health = await store.health();
     console.log(health.code, health.message, (await store.exists(["k"])).codes[0]);
     await store.close();`,
  );
  assert.is(code, 0, output);
  assert.match(output, /^2 the master m:1 does not answer: RPC_FAIL \(-900.* -900\n/);
});

test("more items than the queue takes fail: batches are cut before", async () => {
  const { code, output } = await run(
    "limit",
    `const store = await open(${segment});
     const keys = Array.from({ length: 5000 }, (_, i) => "k" + i);
     const put = await store.put(keys, keys.map(() => new Uint8Array(8)));
     const got = await store.get(keys);
     console.log(put.ok, got.ok);
     await store.close();`,
  );
  assert.is(code, 0, output);
  assert.is(output, "5000 5000\n");
});

test.run();
