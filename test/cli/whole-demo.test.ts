import { EventEmitter } from "node:events";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { runWholeDemo } from "../../src/cli/demo/whole-demo.js";
import { type KvStore, openStore } from "../../src/store/index.js";
import { KeyList } from "../../src/store/shared/keys.js";
import { run } from "./helpers/run.js";

const TOKENS = Uint32Array.from({ length: 2000 }, (_, index) => (index * 7919) % 200_000);

/** A store that remembers the keys that were put, and some of whose calls are replaced. */
async function withStore(
  replaced: Partial<KvStore>,
  use: (store: KvStore, keys: Set<string>) => Promise<void>,
): Promise<void> {
  const store = await openStore("embedded:?capacity=512MiB");
  const keys = new Set<string>();
  const calls: Partial<KvStore> = {
    putFrom: (list, segments, options) => {
      const texts = new KeyList(list);
      for (let i = 0; i < texts.length; i++) keys.add(texts.at(i));
      return store.putFrom(list, segments, options);
    },
    ...replaced,
  };
  const proxy = new Proxy(store, {
    get(target, name) {
      const own = Reflect.get(calls, name) ?? Reflect.get(target, name);
      return typeof own === "function" ? own.bind(target) : own;
    },
  });
  try {
    await use(proxy as KvStore, keys);
  } finally {
    await store.close();
  }
}

const demo = (store: KvStore, more: Partial<Parameters<typeof runWholeDemo>[0]> = {}) =>
  runWholeDemo({ store, tokens: TOKENS, kernel: undefined, step: async () => {}, ...more });

test("all keys of a run have one prefix of its own, and nothing is left", async () => {
  await withStore({}, async (store, keys) => {
    const own = [new Uint8Array(4)];
    (await store.put(["gpt-oss-20b@of an engine"], own)).throwIfFailed();
    const prefixes = new Set<string>();
    for (let i = 0; i < 2; i++) {
      const { first, conversation } = await demo(store);
      assert.equal([first.differences, conversation.differences], [0, 0]);
      assert.ok(keys.size > 500, String(keys.size));
      for (const key of keys) prefixes.add(/^mooncake-kv-demo-\d+@gpt-oss-20b@/.exec(key)?.[0] ?? key);
      keys.clear();
      assert.is((await store.usage())!.keys, 1n, "what an engine has stays");
    }
    assert.is(prefixes.size, 2);
  });
});

test("nothing is left after a failure, or a stop between two steps", async () => {
  for (const stopAt of ["comparing every byte", "turn 3 of 5"])
    await withStore({}, async (store, keys) => {
      const step = async (what: string) => {
        if (what === stopAt) throw new Error("stopped");
      };
      const error = await demo(store, { step }).catch((thrown: Error) => thrown);
      assert.is((error as Error).message, "stopped");
      assert.ok(keys.size > 100);
      assert.is((await store.usage())!.keys, 0n);
    });
});

test("a store that does not remove is told, with the prefix", async () => {
  for (const removeByRegex of [async () => -801, () => Promise.reject(new Error("gone"))]) {
    const left: unknown[] = [];
    await withStore({ removeByRegex }, async (store) => {
      await demo(store, { onLeftBehind: async (what) => void left.push(what) });
    });
    assert.is(left.length, 1);
    assert.match(JSON.stringify(left[0]), /mooncake-kv-demo-\d+.*(?:code -801|gone)/);
  }
});

test("a signal ends the command at the next step, with its status, and nobody listens afterwards", async () => {
  for (const [name, status] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    const signals = new EventEmitter();
    const running = run(["demo"], { signals });
    while (signals.listenerCount(name) === 0) await new Promise(setImmediate);
    signals.emit(name);
    const { exitCode, stderr } = await running;
    assert.equal([exitCode, stderr], [status, `mooncake-kv: ended by ${name}\n`]);
    for (const each of ["SIGINT", "SIGTERM", "SIGHUP"]) assert.is(signals.listenerCount(each), 0);
  }
});

test("on a terminal the demo says what it is at, on stderr only, and takes it away", async () => {
  const { exitCode, stdout, stderr } = await run(["demo"], { terminal: true });
  assert.is(exitCode, 0);
  for (const step of ["hashing a prompt", "engine A saves", "comparing every byte", "turn 5 of 5"])
    assert.match(stderr, `\r\u001b[Kdemo: ${step}`);
  assert.ok(stderr.endsWith("\r\u001b[K"));
  assert.not.match(stdout, "\r");
});

test.run();
