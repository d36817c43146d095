import { test } from "uvu";
import * as assert from "uvu/assert";
import { runVectorLines } from "../../src/conformance/index.js";
import {
  connectorSettings,
  MooncakeStorePromMetrics,
  MooncakeStoreScheduler,
  MooncakeStoreWorker,
  PendingLookups,
  workerSettings,
} from "../../src/connector/index.js";
import { type ErrorCode, isMooncakeKvError } from "../../src/errors.js";
import {
  BlockIndex,
  EventLog,
  EventSubscriber,
  encodeEventBatch,
  ZmqEventPublisher,
} from "../../src/events/index.js";
import * as core from "../../src/index.js";
import { LookupKeyClient, LookupKeyServer, LookupResponder } from "../../src/lookup/index.js";
import { openStore, retryKeys } from "../../src/store/index.js";

// Whoever writes JavaScript, or gets options from a file, hears of a misspelt one and of none at all: an error of ours that
// says what is wrong, and never a TypeError from inside.

const hasher = () => new core.BlockHasher({ blockSize: 4 });
const coordinator = () =>
  new core.MooncakeStoreCoordinator({
    kvCacheGroups: [{ kvCacheSpec: { kind: "full", blockSize: 4 } }],
    schedulerBlockSize: 4,
    hashBlockSize: 4,
  });
const layout = () => ({ metadata: { modelName: "m" }, blockSize: 4 });
const shards = () => ({ ...layout(), tpSize: 1, tpRank: 0, storeTpSize: 1, numKvHeads: 1 });
const groups = () => [{ kvCacheSpec: { kind: "full", blockSize: 4 } }];

/** Each call that takes options: what they are where they are right, and the code of what is wrong. */
const CALLS: readonly (readonly [
  name: string,
  code: ErrorCode,
  call: (options: never) => unknown,
  good: () => object,
])[] = [
  ["BlockHasher", "ERR_HASH", (options) => new core.BlockHasher(options), () => ({ blockSize: 4 })],
  ["BlockHasher.create", "ERR_HASH", (options) => core.BlockHasher.create(options), () => ({ blockSize: 4 })],
  ["BlockHasher.hash", "ERR_HASH", (request) => hasher().hash(request), () => ({ promptTokenIds: [1] })],
  ["keyMetadata", "ERR_KEY", (init) => core.keyMetadata(init), () => ({ modelName: "m" })],
  ["PoolKey", "ERR_KEY", (init) => new core.PoolKey(init, "ab"), () => ({ modelName: "m" })],
  ["RankLocalStoreLayout", "ERR_LAYOUT", (options) => new core.RankLocalStoreLayout(options), layout],
  ["LBHNCStoreLayout", "ERR_LAYOUT", (options) => new core.LBHNCStoreLayout(options), shards],
  ["LBNHCStoreLayout", "ERR_LAYOUT", (options) => new core.LBNHCStoreLayout(options), shards],
  ["ChunkedTokenDatabase", "ERR_LAYOUT", (options) => new core.ChunkedTokenDatabase(options), layout],
  [
    "kvCacheBytes",
    "ERR_LAYOUT",
    (shape) => core.kvCacheBytes(shape),
    () => ({
      layout: "LBHNC",
      numLayers: 1,
      numBlocks: 1,
      numHeads: 1,
      blockSize: 4,
      contentSize: 1,
      elementSize: 1,
    }),
  ],
  [
    "ReqMeta.create",
    "ERR_REQUEST",
    (init) => core.ReqMeta.create(init),
    () => ({ reqId: "r", tokenLenChunk: 0, blockIds: [], blockHashes: [] }),
  ],
  [
    "MooncakeStoreCoordinator",
    "ERR_CONFIG",
    (options) => new core.MooncakeStoreCoordinator(options),
    () => ({ kvCacheGroups: groups(), schedulerBlockSize: 4, hashBlockSize: 4 }),
  ],
  [
    "MooncakeStoreCoordinator.fromKvCacheConfig",
    "ERR_CONFIG",
    (config) => core.MooncakeStoreCoordinator.fromKvCacheConfig(config),
    () => ({ kvCacheGroups: groups(), schedulerBlockSize: 4, hashBlockSize: 4 }),
  ],
  [
    "MooncakeStoreCoordinator.lookup",
    "ERR_LOOKUP",
    (options) => coordinator().lookup(options),
    () => ({ numTokens: 4, blockHashes: [], keyPrefixes: [["p"]], exists: () => [] }),
  ],
  [
    "windows of a lookup",
    "ERR_LOOKUP",
    (windows) =>
      coordinator().lookup({
        numTokens: 4,
        blockHashes: [],
        keyPrefixes: [["p"]],
        exists: () => [],
        windows: windows ?? (5 as never),
      }),
    () => ({ first: 1 }),
  ],
  [
    "resolveKvCacheBlockSizes",
    "ERR_CONFIG",
    (options) => core.resolveKvCacheBlockSizes(options),
    () => ({ kvCacheGroups: groups(), blockSize: 4 }),
  ],
  [
    "connectorSettings",
    "ERR_CONFIG",
    (config) => connectorSettings(config),
    () => ({ kvRole: "kv_both", kvCacheGroups: groups(), blockSize: 4 }),
  ],
  [
    "workerSettings",
    "ERR_CONFIG",
    (config) => workerSettings(config),
    () => ({ kvRole: "kv_both", kvCacheGroups: groups(), blockSize: 4, model: "m", numKvHeads: 1 }),
  ],
  [
    "MooncakeStoreScheduler",
    "ERR_CONFIG",
    (options) => new MooncakeStoreScheduler(options),
    () => ({ config: { kvRole: "kv_both", kvCacheGroups: groups(), blockSize: 4 }, lookupClient: {} }),
  ],
  [
    "MooncakeStoreWorker",
    "ERR_CONFIG",
    (options) => new MooncakeStoreWorker(options),
    () => ({
      config: { kvRole: "kv_both", kvCacheGroups: groups(), blockSize: 4, model: "m", numKvHeads: 1 },
      store: {},
    }),
  ],
  [
    "PendingLookups",
    "ERR_CONFIG",
    (options) => new PendingLookups((() => {}) as never, options ?? (5 as never)),
    () => ({ timeoutMs: 5 }),
  ],
  ["MooncakeStorePromMetrics", "ERR_CONFIG", (options) => new MooncakeStorePromMetrics(options), () => ({})],
  ["BlockIndex", "ERR_CONFIG", (options) => new BlockIndex(options), () => ({ blockSize: 4 })],
  ["EventLog", "ERR_CONFIG", (options) => new EventLog(options ?? (5 as never)), () => ({})],
  [
    "EventSubscriber",
    "ERR_CONFIG",
    (options) => new EventSubscriber(options),
    () => ({ endpoint: "tcp://127.0.0.1:1" }),
  ],
  [
    "encodeEventBatch",
    "ERR_CONFIG",
    (options) => encodeEventBatch({ ts: 0, events: [], dataParallelRank: null }, options ?? (5 as never)),
    () => ({}),
  ],
  [
    "ZmqEventPublisher.open",
    "ERR_CONFIG",
    (options) => ZmqEventPublisher.open(options ?? (5 as never)),
    () => ({ endpoint: "nowhere" }),
  ],
  [
    "LookupKeyClient",
    "ERR_CONFIG",
    (options) => new LookupKeyClient(options),
    () => ({ socketPath: "ipc:///nowhere" }),
  ],
  [
    "LookupResponder",
    "ERR_CONFIG",
    (options) => new LookupResponder({ lookup: () => ({ hitLength: 0 }) } as never, options ?? (5 as never)),
    () => ({}),
  ],
  [
    "LookupKeyServer",
    "ERR_CONFIG",
    (options) => LookupKeyServer.listen({ lookup: () => ({ hitLength: 0 }) } as never, options),
    () => ({ socketPath: "ipc:///nowhere/at/all" }),
  ],
  ["openStore", "ERR_CONFIG", (config) => openStore(config), () => ({ backend: "embedded" })],
  [
    "retryKeys",
    "ERR_STORE",
    (options) => retryKeys([], (() => {}) as never, options ?? (5 as never)),
    () => ({ attempts: 0 }),
  ],
  [
    "runVectorLines",
    "ERR_CONFIG",
    (options) => runVectorLines("f", [], {}, options ?? (5 as never)),
    () => ({}),
  ],
];

async function errorOf(run: () => unknown): Promise<unknown> {
  try {
    await run();
    return undefined;
  } catch (error) {
    return error;
  }
}

for (const [name, code, call, good] of CALLS) {
  test(`${name} without options is refused in words`, async () => {
    for (const nothing of [undefined, null, 5]) {
      const error = await errorOf(() => call(nothing as never));
      assert.ok(isMooncakeKvError(error), `${nothing}: ${String((error as Error | undefined)?.stack)}`);
    }
  });
  test(`${name} refuses an option that nobody knows`, async () => {
    const error = await errorOf(() => call({ ...good(), blokSize: 1 } as never));
    assert.ok(isMooncakeKvError(error, code), String((error as Error | undefined)?.stack));
    assert.match(error.message, /blokSize/);
  });
}

test.run();
