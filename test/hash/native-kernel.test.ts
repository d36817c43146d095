import { test } from "uvu";
import * as assert from "uvu/assert";
import { BlockHasher, type BlockHasherOptions } from "../../src/hash/block-hasher.js";
import { nativeBlockHashKernel } from "../../src/native/index.js";
import { kernelAgrees, kernelChangesNothing } from "../../src/testing/laws/hash-laws.js";
import { check } from "../helpers/property.js";

// The native kernel against the TypeScript encoder, with the processor's SHA instructions and without.

const variants: readonly Omit<BlockHasherOptions, "blockSize">[] = [
  { algorithm: "sha256" },
  { algorithm: "sha256_cbor" },
  { algorithm: "sha256", release: "vllm-0.27", seed: "0" },
  { algorithm: "sha256_cbor", numHashLookaheadTokens: 2 },
];

for (const portable of [false, true]) {
  const name = portable ? "portable" : "fastest";
  const kernel = nativeBlockHashKernel({ portable });

  for (const format of ["pickle", "cbor"] as const)
    test(`law: the ${name} kernel hashes ${format} chains as TypeScript does`, () => {
      check(kernelAgrees(kernel, format));
    });

  for (const options of variants)
    test(`law: the ${name} kernel changes nothing, ${JSON.stringify(options)}`, () => {
      check(kernelChangesNothing(kernel, options), { numRuns: 300 });
    });

  test(`the ${name} kernel on a long prompt and on every block size up to 130`, async () => {
    const tokens = Uint32Array.from(
      { length: 60_000 },
      (_, index) => (index * 2_654_435_761) >>> (index % 25),
    );
    const expected = new BlockHasher({ blockSize: 16 }).hash(tokens);
    const hasher = new BlockHasher({ blockSize: 16, kernel });
    assert.ok(Buffer.from(hasher.hash(tokens).blob).equals(expected.blob));
    assert.ok(Buffer.from((await hasher.hashAsync(tokens)).blob).equals(expected.blob));
    // One to three blocks each, so that every length around the 64-byte blocks of SHA-256 is met.
    for (let blockSize = 1; blockSize <= 130; blockSize++)
      for (const algorithm of ["sha256", "sha256_cbor"] as const) {
        const some = tokens.subarray(blockSize, blockSize * 4);
        assert.equal(
          new BlockHasher({ blockSize, algorithm, kernel }).hash(some).toHex(),
          new BlockHasher({ blockSize, algorithm }).hash(some).toHex(),
          `${algorithm}, ${blockSize} tokens a block`,
        );
      }
  });

  test(`the ${name} kernel with the widest tokens and the longest extra keys that a session hands it`, () => {
    const promptTokenIds = new Uint32Array(4_285 * 2).fill(0xffff_ffff);
    for (const cacheSalt of ["", "x".repeat(29_980)])
      for (const algorithm of ["sha256", "sha256_cbor"] as const) {
        const hash = (used?: typeof kernel) =>
          new BlockHasher({ blockSize: 4_285, algorithm, kernel: used })
            .hash({ promptTokenIds, cacheSalt })
            .toHex();
        assert.equal(hash(kernel), hash());
      }
  });
}

test.run();
