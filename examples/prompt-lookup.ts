// How a gateway finds out which part of a prompt is in the pool: no KV memory, only hashes and keys. A store that can't
// be asked is no miss: whoever takes an outage for "nothing is stored" sends the prompt to the wrong engine.
import { BlockHasher, isMooncakeKvError, KeyTable, PoolKey, SegmentTable } from "mooncake-kv";
import { type KvStore, openStore } from "mooncake-kv/store";

const hasher = new BlockHasher({ blockSize: 16 });
const prefix = PoolKey.buildPrefix({ modelName: "example-model" });

/** Tokens from the beginning of a prompt that are stored for TP rank 0. Throws where the store does not say. */
async function storedTokens(store: KvStore, tokens: Uint32Array): Promise<number> {
  const hashes = await hasher.hashAsync(tokens);
  const result = await store.exists(KeyTable.fromHashes(prefix, hashes), { deadlineMs: 1_000 });
  const { codes } = result.throwIfFailed();
  const missing = codes.findIndex((code) => code !== 1);
  return (missing < 0 ? codes.length : missing) * hasher.blockSize;
}

/** The same as a line of text, in which an outage is unknown. */
async function lookup(store: KvStore, tokens: Uint32Array): Promise<string> {
  try {
    return `${await storedTokens(store, tokens)} of ${tokens.length} tokens`;
  } catch (error) {
    if (!isMooncakeKvError(error, "ERR_STORE")) throw error;
    return `unknown: ${error.message}`;
  }
}

// Somebody has stored the first three blocks of a conversation.
const store = await openStore(process.env["STORE"] ?? "embedded:?capacity=16MiB");
const conversation = Uint32Array.from({ length: 100 }, (_, index) => 500 + index);
const stored = hasher.hash(conversation).slice(0, 3);
const arena = await store.createArena(4096);
for (const hash of stored) {
  const key = PoolKey.buildKeyString(prefix, hash);
  const value = SegmentTable.fromRows([[{ address: arena.baseAddress, size: 1024n }]]);
  (await store.putFrom([key], value)).throwIfFailed();
}

console.log(`the conversation: ${await lookup(store, conversation)}`);
console.log(`another prompt: ${await lookup(store, conversation.slice(1))}`);
await store.close();

// Nobody listens there.
const away = await openStore("mooncake-admin:http://127.0.0.1:1");
console.log(`without a master: ${await lookup(away, conversation)}`);
await away.close();
