// Asks a running engine how much of a prompt its store holds. Without one, it plays both parts: the server side is what
// another engine, or a gateway's test, answers vLLM's scheduler with.
import { mkdtemp, rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { BlockHasher } from "mooncake-kv";
import { LookupKeyClient, LookupKeyServer, lookupSocketPath } from "mooncake-kv/lookup";

const folder = await mkdtemp(join(tmpdir(), "lookup-"));
const socketPath = lookupSocketPath({ rpcBasePath: folder, hostname: hostname(), lookupRpcPort: 1 });

// The engine's side: three blocks of every prompt are stored.
const server = await LookupKeyServer.listen(
  {
    lookup: (_numTokens, blockHashes) => {
      const hitLength = Math.min(blockHashes.length, 3) * 16;
      return { hitLength, tailKeyBoundaries: [{ groupId: 0, numTokens: hitLength }] };
    },
  },
  { socketPath, onProblem: ({ reason, message }) => console.error(`${reason}: ${message}`) },
);

// The asker's side.
const client = new LookupKeyClient({ socketPath, timeoutMs: 1_000 });
const tokens = Uint32Array.from({ length: 100 }, (_, index) => 500 + index);
const answer = await client.lookup(
  "request-1",
  tokens.length,
  new BlockHasher({ blockSize: 16 }).hash(tokens),
);
if (answer.failure) console.log(`unknown: ${answer.failure.error.message}`);
else console.log(`${answer.hitLength} of ${tokens.length} tokens are stored`);

await client.close();
await server.close();
await rm(folder, { recursive: true });
