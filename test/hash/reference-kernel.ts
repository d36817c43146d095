import { BlockEncoder } from "../../src/hash/block-encoder.js";
import { sha256 } from "../../src/hash/digest.js";
import type { BlockHashKernel, HashChainInput } from "../../src/hash/kernel.js";

/**
 * A kernel with the TypeScript encoder in place of native code. Extra keys are put into the finished bytes of a block
 * without any, so that it does not depend on how a session assembles them.
 */
export function referenceKernel(seen: HashChainInput[] = []): BlockHashKernel {
  return {
    hashChain(input) {
      seen.push({ ...input, parent: input.parent.slice(), tokens: input.tokens.slice() });
      const { format, tokens, blockSize, extras, extraEnds } = input;
      const encoder = new BlockEncoder(format);
      const blocks = tokens.length / blockSize;
      const hashes = new Uint8Array(blocks * 32);
      let parent = input.parent;
      for (let block = 0; block < blocks; block++) {
        const start = block * blockSize;
        const bytes = encoder.encode(parent, tokens, start, start + blockSize, null);
        const extra = extras?.subarray(block === 0 ? 0 : extraEnds![block - 1]!, extraEnds![block]!);
        parent = sha256(extra?.length ? withExtra(format, bytes, extra) : bytes);
        hashes.set(parent, block * 32);
      }
      return hashes;
    },
  };
}

/** Puts extra keys where the None of a block stands. */
function withExtra(format: "pickle" | "cbor", bytes: Uint8Array, extra: Uint8Array): Uint8Array {
  if (format === "cbor") return Buffer.concat([bytes.subarray(0, -1), extra]);
  const tail = bytes.length - 4; // None, then the three opcodes that end the outer tuple and the pickle.
  const whole = Buffer.concat([bytes.subarray(0, tail), extra, bytes.subarray(tail + 1)]);
  whole.writeBigUInt64LE(BigInt(whole.length - 11), 3);
  return whole;
}
