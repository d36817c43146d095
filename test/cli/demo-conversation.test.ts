import { test } from "uvu";
import * as assert from "uvu/assert";
import { DemoBlockPool } from "../../src/cli/demo/conversation/block-pool.js";
import { BlockTables } from "../../src/cli/demo/conversation/block-tables.js";
import { runConversation } from "../../src/cli/demo/conversation/run-conversation.js";
import { GPT_OSS_20B } from "../../src/cli/demo/model.js";
import { isMooncakeKvError } from "../../src/errors.js";
import type { Arena } from "../../src/store/arena.js";
import { type KvStore, openStore, StoreResult } from "../../src/store/index.js";
import { KeyList } from "../../src/store/shared/keys.js";

const TOKENS = Uint32Array.from({ length: 2000 }, (_, index) => (index * 7919) % 200_000);

/** A real store, some of whose calls are replaced. */
async function withStore(
  replaced: (store: KvStore, arenas: Arena[]) => Partial<KvStore>,
  use: (store: KvStore) => Promise<void>,
): Promise<void> {
  const store = await openStore("embedded:?capacity=256MiB");
  const arenas: Arena[] = [];
  const calls: Partial<KvStore> = {
    createArena: async (bytes) => {
      const arena = await store.createArena(bytes);
      arenas.push(arena);
      return arena;
    },
    ...replaced(store, arenas),
  };
  const proxy = new Proxy(store, {
    get(target, name) {
      const own = Reflect.get(calls, name) ?? Reflect.get(target, name);
      return typeof own === "function" ? own.bind(target) : own;
    },
  });
  try {
    await use(proxy);
  } finally {
    await store.close();
  }
}

const converse = (store: KvStore, cachePrefix = "demo-1") =>
  runConversation({ store, tokens: TOKENS, kernel: undefined, cachePrefix, step: async () => {} });

const failsWithDifferences = async (store: KvStore) => {
  try {
    await converse(store);
  } catch (error) {
    assert.ok(isMooncakeKvError(error, "ERR_STORE"), String(error));
    assert.match(error.message, /of the loaded 32-bit words are not what was saved/);
    return Number(error.details["differences"]);
  }
  return assert.unreachable("wrong bytes were not noticed") as never;
};

test("one wrong byte is noticed", async () => {
  let loads = 0;
  const flip = (store: KvStore, arenas: Arena[]): Partial<KvStore> => ({
    getInto: async (keys, segments, options) => {
      const result = await store.getInto(keys, segments, options);
      if (++loads === 2) {
        const { address, size } = segments.row(3)[5]!;
        const arena = arenas.find(
          ({ baseAddress, size: bytes }) => address >= baseAddress && address < baseAddress + BigInt(bytes),
        )!;
        arena.bytes[Number(address - arena.baseAddress + size / 2n)]! ^= 1;
      }
      return result;
    },
  });
  await withStore(flip, async (store) => {
    assert.is(await failsWithDifferences(store), 1);
  });
});

test("a store that says that it has loaded, and has not, is noticed", async () => {
  const lazy = (store: KvStore): Partial<KvStore> => ({
    getInto: async (keys) => {
      const { codes } = await store.size(keys);
      return new StoreResult("getInto", new KeyList(keys), codes);
    },
  });
  await withStore(lazy, async (store) => {
    assert.ok((await failsWithDifferences(store)) > 100_000);
  });
});

test("a store that keeps nothing is slow, not wrong", async () => {
  const forgetful = (store: KvStore): Partial<KvStore> => ({
    exists: async (keys) => {
      const { codes } = await store.exists(keys);
      return new StoreResult("exists", new KeyList(keys), new Int32Array(codes.length));
    },
  });
  await withStore(forgetful, async (store) => {
    const { hitTokens, loadedBytes, differences, turns } = await converse(store);
    assert.equal([hitTokens, loadedBytes, differences], [0, 0, 0]);
    assert.ok(turns.every(({ promptTokens, computedTokens }) => computedTokens >= promptTokens));
    assert.ok(turns.every(({ lostToken }) => lostToken === null));
  });
});

test("a store that can never load leaves everything to compute", async () => {
  const broken = (): Partial<KvStore> => ({
    getInto: async () => {
      throw new Error("no route to the store");
    },
  });
  await withStore(broken, async (store) => {
    const { hitTokens, loadedBytes, turns } = await converse(store);
    assert.equal([hitTokens, loadedBytes], [0, 0]);
    assert.equal(
      turns[1]!.admissions.map(({ loaded }) => loaded),
      [false, false, false, true],
    );
  });
});

test("a run finds nothing of one under another prefix", async () => {
  await withStore(
    () => ({}),
    async (store) => {
      for (let i = 0; i < 2; i++) {
        const { turns, hitTokens } = await converse(store, `demo-${i}`);
        assert.is(turns[0]!.hitTokens, 0);
        assert.is(hitTokens, 1072 + 1296 + 512 + 768);
      }
    },
  );
});

test("the window moves on: what no later token looks at is given back", () => {
  const pool = new DemoBlockPool(101);
  const tables = new BlockTables(pool, GPT_OSS_20B);
  assert.equal(
    tables.grow(0, 160)!.map((list) => list.length),
    [10, 10],
  );
  assert.is(tables.grow(150, 160), null);
  assert.is(tables.blockIds[0]!.filter((blockId) => blockId === 0).length, 1);
  // A hit of 512 tokens: 128 - 1 tokens before token 512 lie in 8 blocks.
  tables.free();
  assert.is(pool.numFree, 100);
  tables.grow(512, 512);
  const [sliding, full] = tables.blockIds;
  assert.equal([sliding!.length, full!.length], [32, 32]);
  assert.equal(sliding!.map((blockId) => blockId > 0).lastIndexOf(false), 23);
  assert.is(pool.numFree, 100 - 8 - 32);
  tables.free();
  assert.is(pool.numFree, 100);
});

test("blocks are counted: nobody gets one that is held, nobody gives back one that is free", () => {
  const pool = new DemoBlockPool(3);
  const block = pool.allocate();
  pool.touch([block]);
  pool.freeBlocks([block]);
  assert.is.not(pool.allocate(), block);
  assert.throws(() => pool.allocate(), /all 2 blocks of the engine are in use/);
  pool.freeBlocks([block]);
  assert.is(pool.allocate(), block);
  pool.freeBlocks([block]);
  assert.throws(() => pool.freeBlocks([block]), /is free/);
  assert.throws(() => pool.touch([block]), /is free/);
  assert.throws(() => pool.touch([77]), /is free/);
});

test.run();
