import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import { keyMetadata } from "../../src/key/key-metadata.js";
import { compareCodePoints, PoolKey } from "../../src/key/pool-key.js";
import {
  keyEqualitiesAgree,
  keyOrderIsTotal,
  keyOrderIsTupleOrder,
} from "../../src/testing/laws/key-laws.js";
import { check } from "../helpers/property.js";

const ours = (pattern: RegExp) => (error: unknown) =>
  isMooncakeKvError(error, "ERR_KEY") && pattern.test(error.message);
const hash = "ab".repeat(32);

test("only the model has no default", () => {
  assert.equal(keyMetadata({ modelName: "m" }), {
    modelName: "m",
    tpRank: 0,
    pcpRank: 0,
    dcpRank: 0,
    ppRank: 0,
    groupId: 0,
    cachePrefix: "",
    storeNamespace: "",
  });
});

test("key texts", () => {
  const full = {
    modelName: "Qwen3-8B",
    tpRank: 3,
    pcpRank: 1,
    dcpRank: 2,
    ppRank: 4,
    groupId: 5,
    cachePrefix: "llama3-fp8-v2",
    storeNamespace: "@store_tp:4@store_pp:1@store_format:lbhnc_v1",
  };
  assert.is(new PoolKey({ modelName: "m" }, "ab").toString(), "m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@ab");
  assert.is(
    new PoolKey(full, "ab").toString(),
    "llama3-fp8-v2@Qwen3-8B@store_tp:4@store_pp:1@store_format:lbhnc_v1@tp_rank:3@pcp1@dcp2@pp_rank:4@group:5@ab",
  );
  assert.is(new PoolKey({ modelName: "m" }, Uint8Array.from([0, 255])).chunkHash, "00ff");
});

test("an empty prefix is none; a prefix stands before the model, once", () => {
  const text = (cachePrefix?: string) =>
    new PoolKey({ modelName: "m", ...(cachePrefix !== undefined && { cachePrefix }) }, "ab").toString();
  assert.is(text(""), text());
  assert.is(text("deploy1"), `deploy1@${text()}`);
});

test("a rank of 0 overrides, undefined does not; the group can't be overridden", () => {
  const own = { modelName: "m", tpRank: 1, pcpRank: 2, dcpRank: 3, ppRank: 4, groupId: 5 };
  assert.is(PoolKey.buildPrefix(own), "m@tp_rank:1@pcp2@dcp3@pp_rank:4@group:5");
  assert.is(
    PoolKey.buildPrefix(own, { tpRank: 0, pcpRank: undefined, dcpRank: 9 }),
    "m@tp_rank:0@pcp2@dcp9@pp_rank:4@group:5",
  );
  assert.is(PoolKey.buildPrefix(own, { pcpRank: 0, ppRank: 0 }), "m@tp_rank:1@pcp0@dcp3@pp_rank:0@group:5");
});

test("a key is its prefix, an @ and its hash", () => {
  const key = new PoolKey({ modelName: "m", groupId: 2 }, hash);
  const prefix = PoolKey.buildPrefix(key.keyMetadata);
  assert.is(PoolKey.buildKeyString(prefix, hash), key.toString());
  assert.is(PoolKey.buildKeyString(prefix, Uint8Array.from(Buffer.from(hash, "hex"))), key.toString());
  assert.is(`${key}`, key.toString());
});

test("bytes of a larger buffer are read at their place", () => {
  const bytes = Uint8Array.from([1, 2, 3, 4]).subarray(1, 3);
  assert.is(PoolKey.buildKeyString("p", bytes), "p@0203");
});

for (const [field, value] of [
  ["tpRank", 1.5],
  ["ppRank", Number.NaN],
  ["groupId", 2 ** 53],
  ["dcpRank", "0"],
  ["modelName", 5],
  ["modelName", undefined],
  ["cachePrefix", "\ud800"],
  ["storeNamespace", 5],
] as const)
  test(`${field} ${JSON.stringify(value)} is refused with its name and value`, () => {
    const init = { modelName: "m", [field]: value } as never;
    assert.throws(() => new PoolKey(init, hash), ours(new RegExp(`^${field} .* is not a`)));
  });

test("an override is checked like a rank", () => {
  assert.throws(() => PoolKey.buildPrefix({ modelName: "m" }, { tpRank: 0.5 }), ours(/^tpRank 0\.5/));
});

test("texts order by code point, where UTF-16 order differs", () => {
  assert.ok(compareCodePoints("\uffff", "\u{10000}") < 0);
  assert.ok("\uffff" > "\u{10000}", "JavaScript's own order");
  assert.ok(compareCodePoints("\u{1f600}", "\ue000") > 0);
  assert.ok(compareCodePoints("a\u{10000}", "a\u{10001}") < 0);
  assert.ok(compareCodePoints("a", "ab") < 0);
  assert.is(compareCodePoints("\u{1f600}", "\u{1f600}"), 0);
});

test("ranks order as numbers, not as texts", () => {
  const at = (tpRank: number) => new PoolKey({ modelName: "m", tpRank }, hash);
  assert.ok(PoolKey.compare(at(2), at(10)) < 0);
  assert.ok(PoolKey.compare(at(-1), at(0)) < 0);
});

test("Python's order exists between keys of equal metadata alone", () => {
  const key = (tpRank: number, chunkHash: string) => new PoolKey({ modelName: "m", tpRank }, chunkHash);
  assert.ok(PoolKey.compareHashes(key(0, "aa"), key(0, "ab")) < 0);
  assert.is(PoolKey.compareHashes(key(0, "aa"), key(0, "aa")), 0);
  assert.throws(
    () => PoolKey.compareHashes(key(0, "aa"), key(1, "ab")),
    ours(/no order in vLLM: tpRank is 0 and 1/),
  );
});

test("two keys of one text are not one key", () => {
  const a = new PoolKey({ modelName: "b@c", cachePrefix: "a" }, hash);
  const b = new PoolKey({ modelName: "c", cachePrefix: "a@b" }, hash);
  assert.is(a.toString(), b.toString());
  assert.not(a.equals(b));
  assert.is.not(a.identity, b.identity);
  assert.is.not(a.stableHash(), b.stableHash());
});

test("the stable hash is this number in every process", () => {
  assert.is(new PoolKey({ modelName: "m" }, "ab").stableHash(), STABLE);
});
/** The first 8 bytes of the SHA-256 of `["","m","",0,0,0,0,0,"ab"]`. */
const STABLE = 0x07bba29aee9f6d86n;

test("law: the order is the order of tuples, texts by code point", () => check(keyOrderIsTupleOrder()));
test("law: the order is total", () => check(keyOrderIsTotal()));
test("law: equality, identity and stable hash agree", () => check(keyEqualitiesAgree()));

test.run();
