import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import {
  blockRemoved,
  blockStored,
  decodeEventBatch,
  type EncodeOptions,
  EventHashes,
  encodeEvent,
  encodeEventBatch,
  type KVCacheEvent,
  type KVEventBatch,
} from "../../src/events/index.js";

const stored = blockStored({
  blockHashes: EventHashes.from([5n]),
  tokenIds: Uint32Array.of(1, 2),
  blockSize: 2,
});
const batch: KVEventBatch = { ts: 1.5, events: [stored], dataParallelRank: 0 };

function refused(
  call: () => unknown,
  message: RegExp,
  code: "ERR_SCHEMA" | "ERR_CONFIG" = "ERR_SCHEMA",
): void {
  assert.throws(
    call,
    (error: unknown) => {
      assert.ok(isMooncakeKvError(error, code), String(error));
      assert.match(error.message, message);
      return true;
    },
    String(message),
  );
}

test("a member that the release does not have, or that nobody knows, is refused", () => {
  const refuse = (event: unknown, release: EncodeOptions["release"], message: RegExp) =>
    refused(() => encodeEvent(event as KVCacheEvent, { release }), message);
  const removed = blockRemoved({ blockHashes: stored.blockHashes });
  refuse({ ...stored, sessionId: "s" }, "vllm-0.27", /of vllm-0.27 has no sessionId/);
  refuse({ ...stored, lookaheadTokenIds: [[1]] }, "vllm-0.31", /no lookaheadTokenIds/);
  refuse({ ...removed, ownership: "x" }, "vllm-0.27", /no ownership/);
  refuse({ ...removed, tokenIds: stored.tokenIds }, "vllm-0.33", /BlockRemoved of vllm-0.33 has no tokenIds/);
  refuse({ ...stored, groupIndex: 3 }, "vllm-0.33", /no groupIndex/);
  assert.ok(encodeEvent({ ...stored, groupIndex: undefined } as KVCacheEvent).length > 0);
});

test("a member of the wrong kind is refused, with its name and value", () => {
  let deep: unknown = 1;
  for (let depth = 0; depth < 33; depth++) deep = [deep];
  const itself: unknown[] = [];
  itself.push(itself);
  const wrong: readonly [object | null, RegExp][] = [
    [null, /no event/],
    [{ type: "BlockMoved" }, /no event "BlockMoved"/],
    [{ type: "__proto__" }, /no event/],
    [{ type: 5 }, /no event 5/],
    [{ blockHashes: [5n] }, /block_hashes is .* EventHashes/],
    [{ blockHashes: { length: 2, *[Symbol.iterator]() {} } }, /EventHashes/],
    [{ blockHashes: 5 }, /EventHashes/],
    [{ blockHashes: null }, /block_hashes is missing/],
    [{ parentBlockHash: 5 }, /parent_block_hash has 5/],
    [{ parentBlockHash: "aa" }, /parent_block_hash has "aa"/],
    [{ parentBlockHash: 2n ** 64n }, /more than 64 bits/],
    [{ tokenIds: [1, 2] }, /token_ids is .* Uint32Array/],
    [{ tokenIds: [-1] }, /Uint32Array/],
    [{ tokenIds: new Uint8Array(2) }, /Uint32Array/],
    [{ tokenIds: undefined }, /token_ids is missing/],
    [{ blockSize: 1.5 }, /block_size is 1.5/],
    [{ blockSize: -1 }, /block_size is -1/],
    [{ blockSize: Number.NaN }, /block_size is NaN/],
    [{ blockSize: 16n }, /block_size is 16n/],
    [{ blockSize: null }, /block_size is missing/],
    [{ groupIdx: -3 }, /group_idx is -3/],
    [{ groupIdx: 2n ** 64n }, /group_idx/],
    [{ medium: 5 }, /5 is no Unicode text/],
    [{ medium: "\ud800" }, /no Unicode text/],
    [{ extraKeys: "x" }, /extra_keys has "x" where a list/],
    [{ extraKeys: ["a"] }, /extra_keys has "a" where a list/],
    [{ extraKeys: [[{ a: 1 }]] }, /no form in MessagePack/],
    [{ extraKeys: [[() => 1]] }, /no form in MessagePack/],
    [{ extraKeys: [[2n ** 70n]] }, /more than 64 bits/],
    [{ extraKeys: [[deep]] }, /more than 32 lists/],
    [{ extraKeys: [itself] }, /more than 32 lists/],
    [{ lookaheadTokenIds: [1] }, /lookahead_token_ids has 1 where a list/],
    [{ lookaheadTokenIds: [["a"]] }, /lookahead_token_ids is "a"/],
    [{ lookaheadTokenIds: [[-1]] }, /lookahead_token_ids is -1/],
  ];
  for (const [members, message] of wrong)
    refused(
      () => encodeEvent((members === null ? null : { ...stored, ...members }) as unknown as KVCacheEvent),
      message,
    );
  for (const hash of [2n ** 64n, -(2n ** 63n) - 1n, "aa", 5])
    refused(() => EventHashes.from([hash as bigint]), /block hash 0 is/);
});

test("as many lists in each other as a reader takes are written", () => {
  let deep: (typeof stored)["extraKeys"] = [];
  for (let depth = 0; depth < 32; depth++) deep = [deep] as never;
  const events = [blockStored({ ...stored, extraKeys: [deep] as never })];
  const read = decodeEventBatch(encodeEventBatch({ ...batch, events }));
  assert.equal((read.events[0] as typeof stored).extraKeys, [deep]);
});

test("a batch that is none, or options that nobody knows, are refused", () => {
  const wrong: readonly [unknown, RegExp][] = [
    [null, /null is no batch/],
    [undefined, /undefined is no batch/],
    [{}, /ts is undefined/],
    [{ ...batch, ts: Number.NaN }, /ts is NaN/],
    [{ ...batch, ts: 5n }, /ts is 5n/],
    [{ ...batch, events: undefined }, /events is undefined/],
    [{ ...batch, events: "ab" }, /events is "ab"/],
    [{ ...batch, events: { length: 3 } }, /it must be a list of events/],
    [{ ...batch, events: new Array(2) }, /no event undefined/],
    [{ ...batch, dataParallelRank: undefined }, /data_parallel_rank is undefined/],
    [{ ...batch, dataParallelRank: -1 }, /data_parallel_rank is -1/],
    [{ ...batch, dataParallelRank: 2n ** 63n }, /data_parallel_rank is/],
  ];
  for (const [given, message] of wrong)
    for (const batchForm of ["array", "map", "tagged-map"] as const)
      refused(() => encodeEventBatch(given as KVEventBatch, { batchForm }), message);
  const options: readonly [unknown, RegExp][] = [
    [null, /options of encode/],
    [{ relase: "vllm-0.27" }, /no option "relase"/],
    [{ release: "vllm-9" }, /release is "vllm-9"/],
    [{ eventForm: "list" }, /eventForm is "list"; it is one of map, array/],
    [{ batchForm: "list" }, /batchForm is "list"/],
  ];
  for (const [given, message] of options) {
    refused(() => encodeEventBatch(batch, given as EncodeOptions), message, "ERR_CONFIG");
    refused(() => encodeEvent(stored, given as EncodeOptions), message, "ERR_CONFIG");
  }
});

test.run();
