import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import { blockFormat, HASH_ALGORITHMS, hashLength, parseHashAlgorithm } from "../../src/hash/algorithm.js";
import {
  getBlockHash,
  getGroupId,
  makeBlockHashWithGroupId,
} from "../../src/hash/block-hash-with-group-id.js";
import { BlockHasher } from "../../src/hash/block-hasher.js";
import { loadDigest, sha256 } from "../../src/hash/digest.js";
import { toExternalBlockHash } from "../../src/hash/external-block-hash.js";
import { resolveNoneHash } from "../../src/hash/none-hash.js";
import { RELEASES } from "../../src/release.js";

// The small parts of block hashing: algorithms, roots, group ids and the hashes that events carry.

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const ours = (pattern: RegExp) => (error: unknown) =>
  isMooncakeKvError(error, "ERR_HASH") && pattern.test(error.message);

test("four algorithms with their serialisation and length", () => {
  assert.equal(
    HASH_ALGORITHMS.map((name) => [parseHashAlgorithm(name), blockFormat(name), hashLength(name)]),
    [
      ["sha256", "pickle", 32],
      ["sha256_cbor", "cbor", 32],
      ["xxhash", "pickle", 16],
      ["xxhash_cbor", "cbor", 16],
    ],
  );
});

for (const name of ["", "SHA256", "builtin", "sha256_cbor_64bit", "toString", undefined, null])
  test(`the algorithm ${JSON.stringify(name)} is refused by name`, () => {
    assert.throws(
      () => parseHashAlgorithm(name as string),
      ours(new RegExp(`${name || ""}.*vLLM knows sha256, sha256_cbor, xxhash, xxhash_cbor`)),
    );
  });

const ROOTS = {
  "0": {
    sha256: "1973e23848344dc43a988a9b478663803cfffe1243480253f9a3cf004b14aa7c",
    sha256_cbor: "4e1195df020de59e0d65a33a4279f1183e7ae4e5d980e309f8b55adff2e61c3e",
    xxhash: "6fb31cc38bba6066183f7f2104b9c051",
    xxhash_cbor: "1ebe36576dcb573f26b99533a20aaeca",
  },
  "vllm-none-hash": {
    sha256: "066b1e8987e027138e98701c46128929378935f9b6cd1549105ae6b4f0d71198",
    sha256_cbor: "9bd96a485ad84efdafb72ee48a1d7a69bcead0f8f0433173941b276b9581eef0",
    xxhash: "d98f72b9c430d985211489af307f0229",
    xxhash_cbor: "a4e364baa0791a6f63bbf917db9b700d",
  },
};

for (const algorithm of HASH_ALGORITHMS)
  test(`the root of ${algorithm} is the hash of the seed text`, async () => {
    const digest = await loadDigest(algorithm);
    for (const [seed, roots] of Object.entries(ROOTS))
      for (const release of RELEASES) {
        const root = resolveNoneHash(algorithm, digest, seed, release);
        assert.equal([root.seed, hex(root.noneHash), root.shareable], [seed, roots[algorithm], true]);
      }
  });

test("without a seed only the sha256 algorithms have a root, and only since vllm-0.31", async () => {
  for (const algorithm of HASH_ALGORITHMS)
    for (const release of RELEASES) {
      const digest = await loadDigest(algorithm);
      const [root, again] = [1, 2].map(() => resolveNoneHash(algorithm, digest, undefined, release));
      const shareable = algorithm.startsWith("sha256") && release !== "vllm-0.27";
      assert.is(root!.shareable, shareable, `${algorithm} ${release}`);
      assert.is(hex(root!.noneHash) === hex(again!.noneHash), shareable);
      if (shareable) assert.is(hex(root!.noneHash), ROOTS["vllm-none-hash"][algorithm as "sha256"]);
      // vllm-0.27 takes the random bytes as they are; later releases hash a random text.
      if (release === "vllm-0.27") assert.equal([root!.seed, root!.noneHash.length], [undefined, 32]);
      else if (!shareable) assert.match(root!.seed!, /^[0-9a-f]{64}$/);
    }
});

test("an empty seed is a seed", () => {
  const root = resolveNoneHash("sha256", sha256, "");
  assert.equal([root.seed, root.shareable], ["", true]);
  assert.is(hex(root.noneHash), hex(sha256(Buffer.from("80059504000000000000008c00942e", "hex"))));
});

test("a group id is four bytes behind the hash and reads back", () => {
  const hash = Uint8Array.from([1, 2, 3]);
  for (const group of [0, 1, 255, 65_536, 0xffff_ffff]) {
    const key = makeBlockHashWithGroupId(hash, group);
    assert.is(hex(key), `010203${group.toString(16).padStart(8, "0")}`);
    assert.equal([hex(getBlockHash(key)), getGroupId(key)], ["010203", group]);
  }
  const inside = new Uint8Array([9, 9, 1, 2, 0, 0, 1, 0, 9]).subarray(2, 8);
  assert.equal([hex(getBlockHash(inside)), getGroupId(inside)], ["0102", 256]);
});

test("a group id that does not fit and a key without one are refused", () => {
  for (const group of [-1, 2 ** 32, 1.5, Number.NaN, "1"])
    assert.throws(
      () => makeBlockHashWithGroupId(new Uint8Array(2), group as number),
      ours(/group id .* 2\^32/),
    );
  for (const read of [getBlockHash, getGroupId])
    assert.throws(() => read(new Uint8Array(3)), ours(/^3 bytes are too few/));
});

test("an event's integer is the last 8 bytes, exact above 2^53", () => {
  const tokens = Array.from({ length: 32 }, (_, token) => token);
  const hash = new BlockHasher({ blockSize: 16, algorithm: "sha256_cbor" }).hash(tokens).at(1)!;
  assert.is(toExternalBlockHash(hash), 17911472383915781900n);
  assert.is(BigInt.asIntN(64, toExternalBlockHash(hash) as bigint), -535271689793769716n);
  assert.is(toExternalBlockHash(hash, false), hash, "the hash itself where integers are off");
  assert.is(toExternalBlockHash(Uint8Array.from([1, 0])), 256n);
  assert.is(toExternalBlockHash(new Uint8Array(0)), 0n);
});

test("the two blocks of the published example have these integers", () => {
  const tokens = Array.from({ length: 16 }, (_, token) => token);
  const integer = (algorithm: "sha256" | "sha256_cbor") =>
    toExternalBlockHash(new BlockHasher({ blockSize: 16, algorithm, seed: "0" }).hash(tokens).at(0)!);
  assert.is(integer("sha256"), 7982712666671721126n);
  assert.is(integer("sha256_cbor"), 12687895063098490012n);
});

test.run();
