// How a gateway finds out which part of a prompt is in the pool: no KV memory, only hashes and keys.
import { BlockHasher, KeyTable, PoolKey, SegmentTable } from "mooncake-kv";
import { openStore } from "mooncake-kv/store";

const store = await openStore(process.env["STORE"] ?? "embedded:?capacity=16MiB");
const hasher = new BlockHasher({ blockSize: 16 });
const prefix = PoolKey.buildPrefix({ modelName: "example-model" });

/** Tokens from the beginning of a prompt that are stored for TP rank 0. */
async function storedTokens(tokens: Uint32Array): Promise<number> {
  const hashes = await hasher.hashAsync(tokens);
  const { codes } = await store.exists(KeyTable.fromHashes(prefix, hashes));
  const missing = codes.findIndex((code) => code !== 1);
  return (missing < 0 ? codes.length : missing) * hasher.blockSize;
}

// Somebody has stored the first three blocks of a conversation.
const conversation = Uint32Array.from({ length: 100 }, (_, index) => 500 + index);
const stored = hasher.hash(conversation).slice(0, 3);
const arena = await store.createArena(4096);
for (const hash of stored) {
  const key = PoolKey.buildKeyString(prefix, hash);
  const value = SegmentTable.fromRows([[{ address: arena.baseAddress, size: 1024n }]]);
  (await store.putFrom([key], value)).throwIfFailed();
}

console.log(`the conversation: ${await storedTokens(conversation)} of ${conversation.length} tokens`);
console.log(
  `another prompt: ${await storedTokens(conversation.slice(1))} of ${conversation.length - 1} tokens`,
);
await store.close();
