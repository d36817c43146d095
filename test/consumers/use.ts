// What the tests of consumers compile and run: every entry point that works without an addon and a server.
import {
  BlockHasher,
  type BlockHasherOptions,
  DEFAULT_RELEASE,
  KeyTable,
  parseKey,
  type Release,
} from "mooncake-kv";
import { runVectorLines, vectorHandlers } from "mooncake-kv/conformance";
import { connectorSettings, type MooncakeStoreSchedulerOptions } from "mooncake-kv/connector";
import { BlockIndex } from "mooncake-kv/events";
import { encodeLookupRequest, type LookupKeyClientOptions } from "mooncake-kv/lookup";
import { nativeAvailable } from "mooncake-kv/native";
import { type CallOptions, openStore } from "mooncake-kv/store";
import { type KeyMetadata, keyMetadataCodec } from "mooncake-kv/wire";
import { loadCodec } from "mooncake-kv/wire/by-name";
import { codecs } from "mooncake-kv/wire/vllm-0.27";

/** What may be set or left out is often at hand as `T | undefined`. */
export function hasherFor(release: Release | undefined, seed: string | undefined): BlockHasher {
  const options: BlockHasherOptions = { blockSize: 4, release, seed, algorithm: "sha256_cbor" };
  return new BlockHasher(options);
}

/** Options of a call with members that may be undefined. */
export function callOptions(signal: AbortSignal | undefined, deadlineMs: number | undefined): CallOptions {
  return { signal, deadlineMs };
}

/** The store of a scheme has what only it has. */
export async function onlyOfThatScheme(): Promise<void> {
  const embedded = await openStore("embedded:");
  embedded.advanceClock(1);
  const mooncake = await openStore("mooncake:./mooncake.json");
  console.log(mooncake.log());
}

/** Types only: nothing of them is left in the output. */
export type Options = MooncakeStoreSchedulerOptions | LookupKeyClientOptions;

async function main(): Promise<void> {
  const hashes = hasherFor(DEFAULT_RELEASE, undefined).hash([1, 2, 3, 4]);
  const [key] = KeyTable.fromHashes("m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:3", hashes);
  const metadata: KeyMetadata = keyMetadataCodec.fromJson({
    model_name: "m",
    tp_rank: 0,
    pcp_rank: 0,
    dcp_rank: 0,
    pp_rank: 0,
  });
  const line = {
    id: "x",
    source: "vllm-0.33.0",
    op: "build_key_string",
    input: { key_prefix: "p", chunk_hash: "h" },
    expected: "p@h",
  };
  const { passed } = await runVectorLines("inline", [JSON.stringify(line)], vectorHandlers);
  console.log(
    JSON.stringify([
      key,
      parseKey(key ?? "").groupId,
      metadata.modelName,
      (await loadCodec("vllm-0.31", "ReqMeta")).release,
      "BoundaryPut" in codecs,
      passed,
      typeof connectorSettings,
      typeof encodeLookupRequest,
      typeof nativeAvailable,
      new BlockIndex({ blockSize: 4 }).match([]).length,
    ]),
  );
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
