/** Who else puts KV blocks into a Mooncake Store, and how their keys look. */
const FOREIGN: readonly [whose: string, form: RegExp][] = [
  ["vllm-ascend", /^.+@pcp\d+@dcp\d+@head_or_tp_rank:\d+@pp_rank:\d+@[0-9a-f]+(?:@.*)?$/],
  ["LMCache", /^[\w.-]+@.+@\d+@\d+@-?[0-9a-f]+(?:@.*)?$/],
  ["SGLang (HiCache)", /^[0-9a-f]{16,}(?:_\d+)+_[kv]$|^[0-9a-f]{16,}(?:_\d+)*_k?v?$/],
];

/** Whose key a text is that is none of vLLM's connector; undefined where that can't be told. */
export function ownerOfKey(key: string): string | undefined {
  return FOREIGN.find(([, form]) => form.test(key))?.[0];
}
