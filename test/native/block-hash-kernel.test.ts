import { createHash } from "node:crypto";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import { type BlockHashInput, loadNative, nativeBlockHashKernel } from "../../src/native/index.js";

const kernel = nativeBlockHashKernel();
const portable = nativeBlockHashKernel({ portable: true });

// What vLLM computes for the seed "0".
const parents: Readonly<Record<"pickle" | "cbor", Uint8Array>> = {
  pickle: fromHex("1973e23848344dc43a988a9b478663803cfffe1243480253f9a3cf004b14aa7c"),
  cbor: fromHex("4e1195df020de59e0d65a33a4279f1183e7ae4e5d980e309f8b55adff2e61c3e"),
};

function fromHex(hex: string): Uint8Array {
  return Uint8Array.from(Buffer.from(hex, "hex"));
}

function toHex(hashes: Uint8Array): string[] {
  const hex = Buffer.from(hashes).toString("hex");
  return hex.match(/.{64}/g) ?? [];
}

function input(
  format: "pickle" | "cbor",
  tokens: readonly number[],
  blockSize: number,
  extras?: readonly string[],
): BlockHashInput {
  const base = { format, parent: parents[format], tokens: Uint32Array.from(tokens), blockSize };
  if (!extras) return base;
  let end = 0;
  return {
    ...base,
    extras: fromHex(extras.join("")),
    extraEnds: Uint32Array.from(extras, (hex) => (end += hex.length / 2)),
  };
}

const known: readonly (readonly [BlockHashInput, readonly string[]])[] = [
  [
    input("pickle", [...Array(32).keys()], 16),
    [
      "6358e31578a64b75ebe28cdb99d3beae65de82a2087321dc6ec84ae048faaaa6",
      "3c3c50f324aefbdfbb124dfdc541efac3e94e59c40f4be08afe70601eeca92c8",
    ],
  ],
  [
    input("cbor", [...Array(32).keys()], 16),
    [
      "d830de3d42c00f25a2949b5d12d98642664a44872c1614c5b0147556276afc9c",
      "fedd9e4abebebbe6f6cf96b682f08d316063fe2f22a5c552192dd62904fcccac",
    ],
  ],
  [
    input("pickle", [1, 256, 65536, 151643, 0, 255, 65535, 2147483647], 4),
    [
      "c8f3cd88a89e8e28a1e4e19359dfedccfcc8a963622028770fae5a0b33ea3221",
      "55d665df466083f0f661fb17e3e3636dcb2a927f395e10bf35b91c216bb74b1a",
    ],
  ],
  [
    input("cbor", [1, 256, 65536, 151643, 0, 255, 65535, 2147483647], 4),
    [
      "20066355ebe333172b6b2b4db809792de488392dbcd130b5dfea8b6b5d6783d6",
      "67502f7c32c5eba2278e96838634c5c7e50185b7a2f0c4a0f1fc643d54ea7758",
    ],
  ],
  [
    input("cbor", [10, 11, 12, 13, 14, 15, 16, 17], 4, [
      "82676d792d6c6f72616874656e616e742d61",
      "81676d792d6c6f7261",
    ]),
    [
      "f5e25afcd4bec8a9ffb379c79b69b9c5a0ba49cfd101d7f415bcd87c1d760e12",
      "3e543af127b7402905cd5f2df66fce9b606868f1659af1ceb5fa966c3cd1e9e5",
    ],
  ],
];

for (const [index, [chain, hashes]] of known.entries())
  test(`known chain ${index}, by every path`, async () => {
    assert.equal(toHex(kernel.hashChain(chain)), hashes);
    assert.equal(toHex(portable.hashChain(chain)), hashes);
    assert.equal(toHex(await kernel.hashChainAsync(chain)), hashes);
  });

test("this processor's path has a name", () => {
  assert.ok(["sha-ni", "armv8", "portable"].includes(loadNative().sha256Path));
});

test("blocks of one token are what node:crypto hashes", () => {
  const parent = parents.cbor;
  const tokens = [0, 23, 24, 255, 256, 65535, 65536, 0xffff_ffff];
  const heads = ["00", "17", "1818", "18ff", "190100", "19ffff", "1a00010000", "1affffffff"];
  for (const [i, token] of tokens.entries()) {
    const encoded = Buffer.concat([
      Buffer.from("835820", "hex"),
      parent,
      Buffer.from(`81${heads[i]}f6`, "hex"),
    ]);
    const expected = createHash("sha256").update(encoded).digest("hex");
    assert.equal(toHex(kernel.hashChain(input("cbor", [token], 1))), [expected]);
  }
});

test("a chain can be cut and continued", () => {
  const tokens = Array.from({ length: 160 }, (_, i) => (i * 7919) % 130_000);
  const whole = kernel.hashChain(input("pickle", tokens, 16));
  const head = kernel.hashChain(input("pickle", tokens.slice(0, 64), 16));
  const tail = kernel.hashChain({
    ...input("pickle", tokens.slice(64), 16),
    parent: head.subarray(head.length - 32),
  });
  assert.equal([...toHex(head), ...toHex(tail)], toHex(whole));
});

test("a view into a larger buffer is read where it lies", () => {
  const chain = input("pickle", [...Array(32).keys()], 16);
  const buffer = new ArrayBuffer(400);
  const tokens = new Uint32Array(buffer, 8, 32);
  tokens.set(chain.tokens);
  const parent = new Uint8Array(buffer, 201, 32);
  parent.set(chain.parent);
  assert.equal(toHex(kernel.hashChain({ ...chain, tokens, parent })), known[0]![1]);
});

test("the asynchronous form has its own copy of the input", async () => {
  const chain = input("pickle", [...Array(32).keys()], 16);
  const pending = kernel.hashChainAsync(chain);
  chain.tokens.fill(0);
  assert.equal(toHex(await pending), known[0]![1]);
});

test("no tokens give no hashes", () => {
  assert.is(kernel.hashChain(input("pickle", [], 16)).length, 0);
});

const refused: readonly (readonly [string, object, RegExp])[] = [
  ["another format", { format: "json" }, /format must be "pickle" or "cbor"/],
  ["a short parent", { parent: new Uint8Array(31) }, /31 bytes; 32 are needed/],
  ["a broken block", { tokens: new Uint32Array(3) }, /3 tokens are not a whole number of blocks of 2/],
  ["an array of tokens", { tokens: [1, 2] }, /tokens must be a Uint32Array/],
  ["a block size of 0", { blockSize: 0 }, /block size is 0/],
  ["a fraction", { blockSize: 1.5 }, /blockSize must be a whole number/],
  ["extras without ends", { extras: Uint8Array.of(0x4e) }, /extras without extraEnds/],
  ["too few ends", { extras: Uint8Array.of(0x4e), extraEnds: Uint32Array.of(1) }, /1 extraEnds for 2 blocks/],
  ["falling ends", { extras: Uint8Array.of(0x4e), extraEnds: Uint32Array.of(1, 0) }, /must never fall/],
  ["ends behind", { extras: Uint8Array.of(0x4e), extraEnds: Uint32Array.of(1, 2) }, /end at the 1 bytes/],
  [
    "a pickle of several frames",
    { tokens: new Uint32Array(12_000).fill(70_000), blockSize: 12_000 },
    /60053 bytes as a pickle; below 60000/,
  ],
];

for (const [name, change, message] of refused)
  test(`refuses ${name}`, async () => {
    const chain = { ...input("pickle", [1, 2, 3, 4], 2), ...change } as BlockHashInput;
    const expected = (error: unknown): boolean =>
      isMooncakeKvError(error, "ERR_NATIVE") && message.test(error.message);
    assert.throws(() => kernel.hashChain(chain), expected);
    try {
      await kernel.hashChainAsync(chain);
      assert.unreachable();
    } catch (error) {
      assert.ok(expected(error), String(error));
    }
  });

test.run();
