import { test } from "uvu";
import * as assert from "uvu/assert";
import { buildFakeLibrary } from "./fake-library.js";
import { runScript, storeModule } from "./run-script.js";

// What the library does to the process that loads it, in processes of their own.

const library = buildFakeLibrary();

/** Runs a script that has an open store called `store`. */
const run = (script: string, environment: Record<string, string> = {}): ReturnType<typeof runScript> =>
  runScript(library, `const store = await open();\n${script}`, environment);

test("signals reach the handlers of this process, not the thread that the library starts", async () => {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    const { code, output } = await run(`
      process.on("${signal}", () => { console.log("handled"); process.exit(5); });
      await store.health();
      setTimeout(() => process.kill(process.pid, "${signal}"), 20);
      setTimeout(() => process.exit(6), 5000);`);
    assert.is(code, 5, `${signal}: ${output}`);
    assert.match(output, /handled/);
  }
});

test("a signal without a handler ends the process as it always does", async () => {
  const { signal, output } = await run(`
    await store.health();
    setTimeout(() => process.kill(process.pid, "SIGTERM"), 20);
    setTimeout(() => {}, 5000);`);
  assert.is(signal, "SIGTERM", output);
});

const slowExit = { MOONCAKE_FAKE_EXIT_MS: "8000" };

test("a process that ends with an open store destroys the client first", async () => {
  for (const [end, expected] of [
    ["process.exit(7)", 7],
    ["throw new Error('oops')", 1],
    ["", 0],
  ] as const) {
    const { code, ms, output } = await run(`console.log("ready"); ${end}`, slowExit);
    assert.is(code, expected, output);
    assert.ok(ms < 3_000, `${end}: ${ms} ms`);
  }
});

test("a process with a call that hangs ends at once, with its own status", async () => {
  const { code, ms, output } = await run(
    `
    const { codes } = await store.exists(["hang:8000:"], { deadlineMs: 50 });
    console.log("ready", codes[0]);
    process.exitCode = 9;
    setTimeout(() => process.exit(), 20);`,
    slowExit,
  );
  assert.is(code, 9, output);
  assert.match(output, /ready -901/);
  assert.ok(ms < 4_000, `${ms} ms`);
});

test("calls hold the process open until they are settled, and nothing longer", async () => {
  const { code, output, ms } = await run(
    `
    console.log("ready");
    store.exists(["hang:300:", "absent"]).then(({ codes }) => console.log("answer", codes[1]));`,
    slowExit,
  );
  assert.is(code, 0, output);
  assert.match(output, /answer 0/);
  assert.ok(ms < 3_000, `${ms} ms`);
});

test("stores in worker threads, which end in the middle of calls, leave the process as it was", async () => {
  const { code, output } = await run(`
    const { Worker } = await import("node:worker_threads");
    const source = \`
      import { parentPort } from "node:worker_threads";
      import { register } from ${JSON.stringify(import.meta.resolve("tsx/esm/api"))};
      register();
      const { openStore } = await import(${JSON.stringify(storeModule)});
      const store = await openStore({ backend: "mooncake-native", library: ${JSON.stringify(library)}, master: "m:1", localHostname: "h" });
      void store.exists(["hang:300:"]);
      void store.put(["hang:200:"], [new Uint8Array(100)]);
      parentPort.postMessage("running");\`;
    for (let i = 0; i < 3; i++) {
      const worker = new Worker(new URL("data:text/javascript," + encodeURIComponent(source)));
      await new Promise((resolve, reject) => { worker.once("message", resolve); worker.once("error", reject); });
      await worker.terminate();
    }
    await new Promise((resolve) => setTimeout(resolve, 600));
    console.log((await store.put(["k"], [new Uint8Array(5)])).codes[0], (await store.health()).message);
    await store.close();`);
  assert.is(code, 0, output);
  assert.match(output, /^0 creates=4 destroys=3/m);
});

test.run();
