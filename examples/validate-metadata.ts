// Checks and converts wire types: what vLLM's scheduler tells its workers, as JSON, MessagePack or binary frames.
import { isMooncakeKvError } from "mooncake-kv";
import { codecs } from "mooncake-kv/wire";

const { LoadSpec, LookupReply } = codecs;

const spec = LoadSpec.fromJson({ vllm_cached_tokens: 16, kvpool_cached_tokens: 48, can_load: true });
console.log(
  `loads ${spec.kvpoolCachedTokens - spec.vllmCachedTokens} tokens, in ${LoadSpec.toMessagePack(spec).length} bytes`,
);

const reply = LookupReply.fromBinary(Buffer.from("00000018000000000000001c", "hex"));
console.log(`a hit of ${reply.hitLength} tokens, ${reply.tailKeyBoundaries.length} tail key boundary`);

try {
  LoadSpec.fromJson({ vllm_cached_tokens: -1, kvpool_cached_tokens: 48, can_load: true });
} catch (error) {
  if (isMooncakeKvError(error, "ERR_SCHEMA")) console.log(error.message);
}
