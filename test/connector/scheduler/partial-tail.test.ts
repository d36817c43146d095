import { test } from "uvu";
import * as assert from "uvu/assert";
import { connectorSettings } from "../../../src/connector/connector-config.js";
import { partialTailNonMambaPuts } from "../../../src/connector/scheduler/partial-tail.js";
import { isMooncakeKvError } from "../../../src/errors.js";
import { BoundaryPut } from "../../../src/request/boundary-put.js";
import { ReqMeta, type ReqMetaInit } from "../../../src/request/req-meta.js";
import { HYBRID, request } from "../../../src/testing/connector/scheduler-harness.js";

const coordinator = (useEagle: boolean) => connectorSettings({ ...HYBRID, useEagle }).coordinator!;

function job(prompt: number, more: Partial<ReqMetaInit> = {}): ReqMeta {
  const blocks = Math.ceil(prompt / 16);
  return ReqMeta.create({
    reqId: "r",
    tokenLenChunk: 0,
    blockIds: [0, 100].map((first) => Array.from({ length: blocks }, (_, index) => first + 13 + index)),
    blockHashes: [...request("r", prompt, { hashBlockSize: 4 }).blockHashes],
    canSave: true,
    numPromptTokens: prompt,
    completedTokenLen: prompt,
    publishPartialTail: true,
    ...more,
  });
}

const puts = (useEagle: boolean, meta: ReqMeta) =>
  partialTailNonMambaPuts(coordinator(useEagle), meta).map((put) => [
    put.groupId,
    put.blockId,
    put.numTokens,
  ]);

test("blocks from the last scheduler block to the checkpoint, each under the hash at its end", () => {
  assert.equal(puts(false, job(45)), [[0, 15, 44]]);
  assert.equal(puts(false, job(75)), [[0, 17, 72]]);
});

test("with speculative decoding the checkpoint is a hash earlier, and its proof reaches a hash further", () => {
  assert.equal(puts(true, job(75)), [[0, 17, 72]]);
});

test("a proof that is not computed yet is left out", () => {
  assert.equal(puts(true, job(75, { completedTokenLen: 71 })), []);
  assert.equal(puts(false, job(75, { completedTokenLen: 72 })), [[0, 17, 72]]);
});

test("nothing is due without a tail, and for a state elsewhere", () => {
  const state = (numTokens: number) => ({
    boundaryPuts: [new BoundaryPut(1, 9, numTokens)],
    publishPartialTail: false,
  });
  assert.equal(puts(false, job(45, { publishPartialTail: false })), []);
  assert.equal(puts(false, job(45, state(44))), [[0, 15, 44]]);
  assert.equal(puts(false, job(45, state(20))), [], "a junction of a shared prefix");
  assert.equal(puts(false, job(45, state(32))), [], "a whole block needs no tail");
});

test("null blocks, missing blocks and missing hashes are passed over", () => {
  assert.equal(puts(false, job(45, { blockIds: [[1, 2, 0], [4]] })), []);
  assert.equal(puts(false, job(45, { blockIds: [[1, 2], [4]] })), []);
  assert.equal(puts(false, job(45, { blockHashes: [] })), []);
  assert.equal(puts(false, job(3)), []);
});

test("a job that does not say how long its prompt is can't be helped", () => {
  assert.throws(
    () => puts(false, job(45, { numPromptTokens: null })),
    (error: unknown) => isMooncakeKvError(error, "ERR_REQUEST"),
  );
});

test.run();
