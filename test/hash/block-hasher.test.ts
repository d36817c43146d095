import { createHash } from "node:crypto";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import { HASH_ALGORITHMS, type HashAlgorithm } from "../../src/hash/algorithm.js";
import { BlockHasher, type BlockHasherOptions } from "../../src/hash/block-hasher.js";
import type { HashRequest } from "../../src/hash/request.js";
import { RELEASES } from "../../src/release.js";
import {
  aTokenReachesAllLaterHashes,
  blockEncoderAgrees,
  hashesOfAPrefixAreAPrefix,
} from "../../src/testing/laws/hash-laws.js";
import { check } from "../helpers/property.js";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);
const ours = (pattern: RegExp) => (error: unknown) =>
  isMooncakeKvError(error, "ERR_HASH") && pattern.test(error.message);

// Published examples: hashes of untagged extra keys, which is what vllm-0.27 makes; seed "0".
interface Example {
  readonly blockSize: number;
  readonly request: HashRequest;
  readonly hashes: Readonly<Record<HashAlgorithm, readonly string[]>>;
}

const plain: readonly Example[] = [
  {
    blockSize: 16,
    request: { promptTokenIds: range(0, 32) },
    hashes: {
      sha256: [
        "6358e31578a64b75ebe28cdb99d3beae65de82a2087321dc6ec84ae048faaaa6",
        "3c3c50f324aefbdfbb124dfdc541efac3e94e59c40f4be08afe70601eeca92c8",
      ],
      sha256_cbor: [
        "d830de3d42c00f25a2949b5d12d98642664a44872c1614c5b0147556276afc9c",
        "fedd9e4abebebbe6f6cf96b682f08d316063fe2f22a5c552192dd62904fcccac",
      ],
      xxhash: ["8ef953407c0da43eacbb3639ed2bff4d", "5a51cc5ac3a4b1f7d5efd012fb00201a"],
      xxhash_cbor: ["209f5d549fc07c8e39d823615ede61ce", "03888914ee75b87e89df867a21beb72b"],
    },
  },
  {
    blockSize: 4,
    request: { promptTokenIds: [1, 256, 65_536, 151_643, 0, 255, 65_535, 2_147_483_647] },
    hashes: {
      sha256: [
        "c8f3cd88a89e8e28a1e4e19359dfedccfcc8a963622028770fae5a0b33ea3221",
        "55d665df466083f0f661fb17e3e3636dcb2a927f395e10bf35b91c216bb74b1a",
      ],
      sha256_cbor: [
        "20066355ebe333172b6b2b4db809792de488392dbcd130b5dfea8b6b5d6783d6",
        "67502f7c32c5eba2278e96838634c5c7e50185b7a2f0c4a0f1fc643d54ea7758",
      ],
      xxhash: ["7b0a33eee407eee45e18bdf13e10d501", "884f8c2bc4f45f62f9e15d000269bf30"],
      xxhash_cbor: ["0be84d08cb4195013986a47d0d0c5687", "1aa58f2c9a97c24071addb084d709b96"],
    },
  },
];

const untagged: readonly Example[] = [
  {
    blockSize: 4,
    request: {
      promptTokenIds: range(10, 18),
      loraRequest: { loraName: "my-lora" },
      cacheSalt: "tenant-a",
    },
    hashes: {
      sha256: [
        "c733a434ceffc5a91f91ca2e189e6b7eff095979010ce3005fdd08f8f37b229a",
        "d04e4556082b0a9e579e47abb5e9c1baf4562cc58fe7d55754ba83fdbf870b33",
      ],
      sha256_cbor: [
        "f5e25afcd4bec8a9ffb379c79b69b9c5a0ba49cfd101d7f415bcd87c1d760e12",
        "3e543af127b7402905cd5f2df66fce9b606868f1659af1ceb5fa966c3cd1e9e5",
      ],
      xxhash: ["cf988c04446bcbc5fcf3140b72633228", "c4ca1d314f379bab0cb2718bd9784208"],
      xxhash_cbor: ["9d0686aa6cb0bb645961595cec67dbe3", "0214f4f2bd716657bf0245cd1e4399c2"],
    },
  },
  {
    blockSize: 8,
    request: {
      promptTokenIds: range(100, 116),
      mmFeatures: [{ identifier: "imghash0123", offset: 5, length: 10 }],
    },
    hashes: {
      sha256: [
        "a9cd20a85fe1ddb3e5402501a40fe309bf58faaa846d60a47561e2d82f360931",
        "d21a4a16d168b90d8356d5e449594af2481fd7054f9bf13919316ea69f2b89b8",
      ],
      sha256_cbor: [
        "12739e7faf05ad755aaaf94b19ac3368c0eab655bfa1f879f296ea29ca03f53c",
        "f776adafc9d73c275454976fd8762a61d4f149a8e483c81e353423ed8aebf301",
      ],
      xxhash: ["2df2ea4aa6e1a053f74727424b311ef2", "102834c35b234a59d495be66c430d44b"],
      xxhash_cbor: ["94d9dd1ee6c008a7be31fb0c482f68a8", "e64bf1c5a5c4c68e16cd76751c8cbc59"],
    },
  },
  {
    blockSize: 4,
    request: {
      promptTokenIds: [7, 7, 7, 7],
      loraRequest: { loraName: "my-lora" },
      mmFeatures: [{ identifier: "imghash0123", offset: 1, length: 3 }],
      cacheSalt: "tenant-a",
      promptEmbeds: { data: new Uint8Array(32), rows: 4 },
    },
    hashes: {
      sha256: ["651bc4459bf268fc145c2e59f58871e10e1f4e8eb49f8cdd1afc187883c1a8af"],
      sha256_cbor: ["b1cade6416280dbf1ccfcb439bd8cf195ea00bad07067a121cff2d547f79a4ce"],
      xxhash: ["705b8b6376312ebd66ff9179163bfd82"],
      xxhash_cbor: ["3f16e2fa4966eeeb9c6d8df35a8ee88a"],
    },
  },
];

for (const algorithm of HASH_ALGORITHMS)
  test(`published examples under ${algorithm}, on every path`, async () => {
    const cases = [
      ...RELEASES.flatMap((release) => plain.map((example) => ({ release, ...example }))),
      ...untagged.map((example) => ({ release: "vllm-0.27" as const, ...example })),
    ];
    for (const { release, blockSize, request, hashes } of cases) {
      const hasher = await BlockHasher.create({ release, blockSize, algorithm, seed: "0" });
      assert.equal(hasher.hash(request).toHex(), hashes[algorithm]);
      assert.equal((await hasher.hashAsync(request)).toHex(), hashes[algorithm]);
    }
  });

test("an explicit block: the last example once more, extra keys written out", async () => {
  const embeds = Buffer.from("66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925", "hex");
  const keys = ["my-lora", ["imghash0123", 1], "tenant-a", Uint8Array.from(embeds)];
  for (const algorithm of HASH_ALGORITHMS) {
    const hasher = await BlockHasher.create({ blockSize: 4, algorithm, seed: "0" });
    for (const parent of [null, new Uint8Array(0), hasher.noneHash])
      assert.is(hex(hasher.hashBlock(parent, [7, 7, 7, 7], keys)), untagged[2]!.hashes[algorithm][0]);
  }
});

test("the default root, without any setting", () => {
  const hashes = (algorithm: HashAlgorithm) =>
    new BlockHasher({ blockSize: 16, algorithm }).hash(range(0, 32)).toHex();
  assert.equal(hashes("sha256"), [
    "fe8fa5dda3210d0ca2031e37cbe3b001186773cd1c710beb2d45fcb51d434798",
    "8be7aaa33831156d316f1f463ae57e643deb63f42e633e2d631df88815cc4629",
  ]);
  assert.equal(hashes("sha256_cbor"), [
    "dc918a88b139e5afe60b88eda27508d4aee16c10fdc354791efea06206ac0749",
    "c300ec275d7bf08af8fc63e76cdc0086911bbc7091e03c5cf892553bef84ef0c",
  ]);
});

test("absent extra keys are null, and an empty list is something else", () => {
  const hasher = new BlockHasher({ blockSize: 4, algorithm: "sha256_cbor" });
  const expected = "58d0879dff3800f65f8c5fd449d73048c0f7699dd238a03b84b146b151d55111";
  assert.equal(hasher.hash([1, 2, 3, 4]).toHex(), [expected]);
  assert.is(hex(hasher.hashBlock(null, [1, 2, 3, 4])), expected);
  assert.is(hex(hasher.hashBlock(null, [1, 2, 3, 4], null)), expected);
  assert.match(hex(hasher.hashBlock(null, [1, 2, 3, 4], [])), /^0b15fd91/);
  assert.equal(new BlockHasher({ blockSize: 4 }).hash([1, 2, 3, 4]).toHex(), [
    "52a7f141c60918f65779927090482b5a24adbe68c8613a211a1eb4e3edd9361a",
  ]);
  assert.match(hex(hasher.hashBlock(null, [1, 2, 3, 4], ["tenant-a"])), /^3572f8b43e1079aa80e6577902c95235/);
});

test("name, salt and images each lead to hashes of their own", () => {
  const hasher = new BlockHasher({ blockSize: 16 });
  const promptTokenIds = range(0, 48);
  const image = (identifier: string) => ({ mmFeatures: [{ identifier, offset: 18, length: 4 }] });
  const lora = (loraName: string, loraPath = "/adapters/x") => ({ loraRequest: { loraName, loraPath } });
  const variants: HashRequest[] = [
    {},
    lora("my-lora"),
    lora("1"),
    lora("my-lora", "/adapters/y"),
    { cacheSalt: "tenant-a" },
    { cacheSalt: "tenant-b" },
    image("A"),
    image("B"),
  ];
  const hashes = variants.map((extra) => hasher.hash({ promptTokenIds, ...extra }).toHex());
  const distinct = (block: number, chosen: readonly number[]) =>
    new Set(chosen.map((variant) => hashes[variant]![block])).size;
  assert.is(distinct(2, range(0, 8)), 8, "every difference reaches the last block");
  assert.is(distinct(0, range(0, 6)), 6, "name, path and salt are in the first block");
  assert.is(distinct(0, [0, 6, 7]), 1, "an image is not in the blocks before it");
  assert.is(distinct(1, [0, 6, 7]), 3);
  assert.equal(hasher.hash({ promptTokenIds, cacheSalt: "" }).toHex(), hashes[0], "an empty salt is none");
});

test("the salt is in the first block alone; later blocks know it through their parent", () => {
  const hasher = new BlockHasher({ blockSize: 4, release: "vllm-0.27", seed: "0" });
  const tokens = range(0, 8);
  const [first, second] = hasher.hash({ promptTokenIds: tokens, cacheSalt: "s" });
  assert.is(hex(first!), hex(hasher.hashBlock(null, tokens.slice(0, 4), ["s"])));
  assert.is(hex(second!), hex(hasher.hashBlock(first!, tokens.slice(4))));
});

test("vllm-0.27 hashes other extra keys than later releases, and those two the same", () => {
  const request = { promptTokenIds: range(0, 16), loraRequest: { loraName: "l", loraPath: "/l" } };
  const [old, middle, newest] = RELEASES.map((release) =>
    new BlockHasher({ blockSize: 16, release, seed: "0" }).hash(request).toHex(),
  );
  assert.equal(middle, newest);
  assert.is.not(old![0], middle![0]);
});

test("a prompt of embeddings alone counts as zeros with the digest of its rows", () => {
  const hasher = new BlockHasher({ blockSize: 2 });
  const data = Uint8Array.from(range(0, 15));
  const hashes = hasher.hash({ promptEmbeds: { data, rows: 5 } });
  const key = (from: number, to: number) =>
    Uint8Array.from(createHash("sha256").update(data.subarray(from, to)).digest());
  const first = hasher.hashBlock(null, [0, 0], [["prompt_embeds", key(0, 6)]]);
  const second = hasher.hashBlock(first, [0, 0], [["prompt_embeds", key(6, 12)]]);
  assert.equal(hashes.toHex(), [hex(first), hex(second)]);
});

test("positions that are no tokens count as 0, except in vllm-0.27", () => {
  const request = {
    promptTokenIds: [5, 6, 7, 8],
    promptIsTokenIds: [true, false, true, false],
    promptEmbeds: { data: new Uint8Array(8), rows: 4 },
  };
  const zeros = { ...request, promptTokenIds: [5, 0, 7, 0] };
  for (const release of RELEASES) {
    const hasher = new BlockHasher({ blockSize: 4, release, seed: "0" });
    assert.is(
      hex(hasher.hash(request).blob) === hex(hasher.hash(zeros).blob),
      release !== "vllm-0.27",
      release,
    );
  }
});

test("a given root wins over the seed; the settings can be read back", () => {
  const root = Uint8Array.from({ length: 32 }, (_, index) => index);
  const hasher = new BlockHasher({ blockSize: 4, noneHash: root, seed: "0" });
  root.fill(0);
  assert.equal(
    [hex(hasher.noneHash).slice(0, 8), hasher.seed, hasher.shareable],
    ["00010203", undefined, true],
  );
  const other = new BlockHasher({ blockSize: 4, seed: "0" });
  assert.is(hex(hasher.hash([1, 2, 3, 4]).at(0)!), hex(other.hashBlock(hasher.noneHash, [1, 2, 3, 4])));
  assert.equal(
    [other.release, other.algorithm, other.format, other.hashLength, other.seed, other.shareable],
    ["vllm-0.33", "sha256", "pickle", 32, "0", true],
  );
});

test("typed arrays and plain lists are the same tokens", () => {
  const hasher = new BlockHasher({ blockSize: 2 });
  const expected = hasher.hash([1, 2, 3, 300]).toHex();
  for (const tokens of [
    new Uint32Array([1, 2, 3, 300]),
    new Int32Array([1, 2, 3, 300]),
    new Float64Array([1, 2, 3, 300]),
  ])
    assert.equal(hasher.hash(tokens).toHex(), expected);
});

test("blocks of many wide tokens are cut into frames as CPython cuts them", () => {
  for (const blockSize of [4_200, 4_290, 8_400, 9_400, 12_000]) {
    const tokens = new Uint32Array(blockSize).fill(0xffff_ffff);
    const hasher = new BlockHasher({ blockSize });
    assert.is(hex(hasher.hash(tokens).at(0)!), hex(hasher.hashBlock(null, tokens)), `${blockSize} tokens`);
  }
});

const refusals: readonly [string, Partial<BlockHasherOptions>, RegExp][] = [
  ["a seedless vllm-0.27", { release: "vllm-0.27" }, /vLLM 0\.27 .*random root.*PYTHONHASHSEED as seed/],
  [
    "an unknown release",
    { release: "vllm-0.30" as never },
    /"vllm-0\.30"; it is one of vllm-0\.27, vllm-0\.31, vllm-0\.33/,
  ],
  ["an unknown algorithm", { algorithm: "md5" as never }, /"md5"; vLLM knows sha256/],
  [
    "look-ahead in 0.31",
    { release: "vllm-0.31", numHashLookaheadTokens: 2 },
    /numHashLookaheadTokens 2 .*vllm-0\.31.*came with vllm-0\.33/,
  ],
  ["a look-ahead of -1", { numHashLookaheadTokens: -1 }, /numHashLookaheadTokens is -1; .* 0 or more/],
  ["a block size of 0", { blockSize: 0 }, /blockSize is 0; .* 1 or more/],
  ["a block size of 1.5", { blockSize: 1.5 }, /blockSize is 1\.5/],
  ["a number as seed", { seed: 0 as never }, /seed 0 is not a text; pass PYTHONHASHSEED as set/],
  [
    "a root in hex",
    { noneHash: "00ff" as never },
    /noneHash "00ff" must be a Uint8Array of 32 bytes for sha256/,
  ],
  ["a root of 16 bytes", { noneHash: new Uint8Array(16) }, /noneHash bytes\(16\).*32 bytes/],
  ["xxhash without create", { algorithm: "xxhash", seed: "0" }, /xxhash .*await BlockHasher\.create/],
];
for (const [name, options, message] of refusals)
  test(`${name} is refused`, () => {
    assert.throws(() => new BlockHasher({ blockSize: 16, ...options }), ours(message));
  });

async function rejection(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
  } catch (error) {
    return error;
  }
  return undefined;
}

for (const algorithm of ["xxhash", "xxhash_cbor"] as const)
  test(`a seedless ${algorithm} is refused with the reason, unless it is private`, async () => {
    for (const release of RELEASES) {
      const error = await rejection(BlockHasher.create({ blockSize: 16, algorithm, release }));
      assert.ok(
        ours(/random root.*never be found.*PYTHONHASHSEED.*rootSharing to "private"/)(error),
        String(error),
      );
      const hasher = await BlockHasher.create({ blockSize: 16, algorithm, release, rootSharing: "private" });
      assert.not(hasher.shareable);
      assert.is(hasher.hash(range(0, 16)).hashLength, 16);
    }
  });

test("xxhash takes a root of 16 bytes, and of 32 as vllm-0.27 draws it", async () => {
  for (const [length, good] of [
    [16, true],
    [32, true],
    [0, false],
    [20, false],
  ] as const) {
    const error = await rejection(
      BlockHasher.create({ blockSize: 4, algorithm: "xxhash", noneHash: new Uint8Array(length) }),
    );
    assert.is(error === undefined || !ours(/16 or 32 bytes/)(error), good, `${length} bytes`);
  }
});

const badTokens: readonly [unknown, RegExp][] = [
  [-1, /token 2 is -1; .*0 to 2\^32 - 1/],
  [2 ** 32, /token 2 is 4294967296/],
  [1.5, /token 2 is 1\.5/],
  [Number.NaN, /token 2 is NaN/],
  [undefined, /token 2 is undefined/],
  ["5", /token 2 is "5"/],
  [5n, /token 2 is 5n/],
];
for (const [token, message] of badTokens)
  test(`the token ${typeof token} ${String(token)} is refused with its place`, () => {
    const hasher = new BlockHasher({ blockSize: 2 });
    assert.throws(() => hasher.hash([1, 2, token as number, 4]), ours(message));
  });

const lora = { loraRequest: { loraName: "l" } };
const badRequests: readonly [string, unknown, RegExp][] = [
  ["no request at all", undefined, /undefined is neither a list of token ids nor a request/],
  ["a text", "abc", /"abc" is neither/],
  ["a number as prompt", { promptTokenIds: 7 }, /promptTokenIds 7 is not a list/],
  ["LoRA without a path", lora, /LoRA "l" has no loraPath, which vllm-0\.33 hashes/],
  ["LoRA without a name", { loraRequest: { loraPath: "/l" } }, /loraRequest\.loraName undefined/],
  ["a number as salt", { cacheSalt: 5 }, /cacheSalt 5 is not a text/],
  [
    "an item without identifier",
    { mmFeatures: [{ offset: 0, length: 1 }] },
    /mmFeatures\[0\]\.identifier undefined/,
  ],
  [
    "an item at -1",
    { mmFeatures: [{ identifier: "i", offset: -1, length: 1 }] },
    /mmFeatures\[0\]\.offset -1/,
  ],
  [
    "an item of half a token",
    { mmFeatures: [{ identifier: "i", offset: 0, length: 0.5 }] },
    /mmFeatures\[0\]\.length 0\.5/,
  ],
  ["neither tokens nor embeddings", { cacheSalt: "s" }, /neither promptTokenIds nor promptEmbeds/],
  [
    "fewer embeddings than tokens",
    { promptTokenIds: [1, 2, 3], promptEmbeds: { data: new Uint8Array(8), rows: 2 } },
    /2 rows for 3 prompt tokens/,
  ],
  ["uneven embedding rows", { promptEmbeds: { data: new Uint8Array(7), rows: 2 } }, /7 bytes in 2 rows/],
  ["embeddings of no rows", { promptEmbeds: { data: new Uint8Array(7), rows: 0 } }, /7 bytes in 0 rows/],
  [
    "too few token marks",
    { promptTokenIds: [1, 2], promptIsTokenIds: [true] },
    /1 entries for 2 prompt tokens/,
  ],
];
for (const [name, request, message] of badRequests)
  test(`${name} is refused`, async () => {
    const hasher = new BlockHasher({ blockSize: 2 });
    assert.throws(() => hasher.hash(request as HashRequest), ours(message));
    assert.ok(ours(message)(await rejection(hasher.hashAsync(request as HashRequest))));
  });

test("vllm-0.27 needs no LoRA path", () => {
  const hasher = new BlockHasher({ blockSize: 1, release: "vllm-0.27", seed: "0" });
  assert.is(hasher.hash({ promptTokenIds: [1], ...lora }).length, 1);
});

test("law: a prefix of the tokens has a prefix of the hashes", async () => {
  for (const algorithm of HASH_ALGORITHMS)
    check(hashesOfAPrefixAreAPrefix(await BlockHasher.create({ blockSize: 5, algorithm, seed: "1" })));
});

test("law: a token reaches its block's hash and all later ones", () => {
  check(aTokenReachesAllLaterHashes(new BlockHasher({ blockSize: 3 })));
});

for (const format of ["pickle", "cbor"] as const)
  test(`law: the block encoder writes the ${format} that the general encoder writes`, () => {
    check(blockEncoderAgrees(format));
  });

test.run();
