/** Another program's form of a key in a Mooncake Store. */
interface ForeignForm {
  /** Whose it is. */
  readonly owner: string;
  /** How it is written, for a person. */
  readonly form: string;
  readonly pattern: RegExp;
}

/** Forms that are found in stores which several programs share. */
const FORMS: readonly ForeignForm[] = [
  {
    owner: "vllm-ascend",
    form: "model@pcpP@dcpD@head_or_tp_rank:H@pp_rank:S@hash",
    pattern: /@pcp\d+@dcp\d+@head_or_tp_rank:\d+@pp_rank:\d+(?:@[^@]+)+$/,
  },
  {
    owner: "LMCache",
    form: "engine@model@world_size@worker_id@hash, or model@world_size@worker_id@hash@dtype",
    // Tags may follow.
    pattern:
      /^(?:vllm|sglang)@.+@\d+@-?\d+@-?[0-9a-f]+(?:@[^@]+)*$|^[^@]+@\d+@-?\d+@-?[0-9a-f]+@[a-z][a-z0-9_]*(?:@[^@]+)*$/,
  },
  {
    owner: "SGLang",
    form: "hash_rank_k, hash_rank_v",
    pattern: /^(?:.*[^0-9a-f])?[0-9a-f]{16,128}_(?:\d+_){0,2}_?[kv]$/,
  },
];

/** Whose key a text is that vLLM's MooncakeStoreConnector did not write; undefined where the form tells nothing. */
export function foreignKey(key: string): Omit<ForeignForm, "pattern"> | undefined {
  // No program writes keys of such a length; the patterns need not try.
  if (key.length > 1024) return undefined;
  const found = FORMS.find(({ pattern }) => pattern.test(key));
  return found && { owner: found.owner, form: found.form };
}
