// A router in miniature: follows the KV events of two engines and asks which of them holds most of a prompt. Both engines
// are played by publishers here; for real ones, use their `--kv-events-config` endpoints.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BlobBlockHashes, BlockHasher } from "mooncake-kv";
import { BlockIndex, blockStored, EventHashes, EventSubscriber, ZmqEventPublisher } from "mooncake-kv/events";

const BLOCK_SIZE = 16;
const folder = await mkdtemp(join(tmpdir(), "events-"));
const hasher = new BlockHasher({ blockSize: BLOCK_SIZE });
const conversation = hasher.hash(Uint32Array.from({ length: 160 }, (_, index) => 500 + index));

/** An engine that has computed the first blocks of the conversation. */
async function startEngine(name: string, blocks: number): Promise<ZmqEventPublisher> {
  const engine = await ZmqEventPublisher.open({
    endpoint: `ipc://${folder}/${name}`,
    replayEndpoint: `ipc://${folder}/${name}-replay`,
  });
  const blockHashes = EventHashes.from(conversation.slice(0, blocks));
  const events = [blockStored({ blockHashes, blockSize: BLOCK_SIZE, medium: "GPU" })];
  await engine.publish({ ts: Date.now() / 1000, events, dataParallelRank: null });
  return engine;
}

/** Follows one engine, until its first batch has come: from the replay, since it was published long ago. */
async function follow(index: BlockIndex, name: string): Promise<void> {
  const subscriber = new EventSubscriber({
    endpoint: `ipc://${folder}/${name}`,
    replayEndpoint: `ipc://${folder}/${name}-replay`,
  });
  for await (const message of subscriber) {
    index.applyMessage(name, message);
    break;
  }
}

function show(index: BlockIndex, what: string, hashes: BlobBlockHashes): void {
  const matches = index.match(hashes).map(({ engine, tokens }) => `${engine} ${tokens} tokens`);
  console.log(`${what}: ${matches.join(", ") || "nobody"}`);
}

const engines = [await startEngine("engine-a", 4), await startEngine("engine-b", 9)];
const index = new BlockIndex({ blockSize: BLOCK_SIZE, capacity: 100_000 });
await Promise.all([follow(index, "engine-a"), follow(index, "engine-b")]);
show(index, "the conversation", conversation);
show(index, "another prompt", hasher.hash(new Uint32Array(160)));
index.apply("engine-b", { type: "AllBlocksCleared" });
show(index, "after engine-b was reset", conversation);

for (const engine of engines) await engine.close();
await rm(folder, { recursive: true });
