import { RELEASES, type Release } from "../release.js";

/** How a member of an event lies on the wire. */
export type FieldKind =
  | "hashes"
  | "hash"
  | "tokens"
  | "size"
  | "integer"
  | "text"
  | "extraKeys"
  | "tokenLists";

/** A member of an event. */
export interface WireField {
  /** Name on the wire. */
  readonly name: string;
  /** Name of the member. */
  readonly member: string;
  readonly kind: FieldKind;
  /** `always`: never left out. `written`: vLLM writes it even when null, old engines lack it. `optional`: null is left out. */
  readonly presence: "always" | "written" | "optional";
  /** First release that has it. */
  readonly since?: Release;
}

/** Members of a `BlockStored`, in the order of the array form. */
export const BLOCK_STORED_FIELDS: readonly WireField[] = [
  { name: "block_hashes", member: "blockHashes", kind: "hashes", presence: "always" },
  { name: "parent_block_hash", member: "parentBlockHash", kind: "hash", presence: "always" },
  { name: "token_ids", member: "tokenIds", kind: "tokens", presence: "always" },
  { name: "block_size", member: "blockSize", kind: "size", presence: "always" },
  { name: "lora_id", member: "loraId", kind: "integer", presence: "written" },
  { name: "medium", member: "medium", kind: "text", presence: "written" },
  { name: "lora_name", member: "loraName", kind: "text", presence: "written" },
  { name: "extra_keys", member: "extraKeys", kind: "extraKeys", presence: "optional" },
  { name: "group_idx", member: "groupIdx", kind: "integer", presence: "optional" },
  { name: "kv_cache_spec_kind", member: "kvCacheSpecKind", kind: "text", presence: "optional" },
  {
    name: "kv_cache_spec_sliding_window",
    member: "kvCacheSpecSlidingWindow",
    kind: "integer",
    presence: "optional",
  },
  { name: "locality", member: "locality", kind: "text", presence: "optional" },
  { name: "ownership", member: "ownership", kind: "text", presence: "optional", since: "vllm-0.31" },
  { name: "session_id", member: "sessionId", kind: "text", presence: "optional", since: "vllm-0.31" },
  {
    name: "lookahead_token_ids",
    member: "lookaheadTokenIds",
    kind: "tokenLists",
    presence: "optional",
    since: "vllm-0.33",
  },
];

/** Members of a `BlockRemoved`, in the order of the array form. */
export const BLOCK_REMOVED_FIELDS: readonly WireField[] = [
  { name: "block_hashes", member: "blockHashes", kind: "hashes", presence: "always" },
  { name: "medium", member: "medium", kind: "text", presence: "written" },
  { name: "group_idx", member: "groupIdx", kind: "integer", presence: "optional" },
  { name: "locality", member: "locality", kind: "text", presence: "optional" },
  { name: "ownership", member: "ownership", kind: "text", presence: "optional", since: "vllm-0.31" },
];

/** The fields of each event. */
export const EVENT_FIELDS: Readonly<Record<string, readonly WireField[]>> = {
  BlockStored: BLOCK_STORED_FIELDS,
  BlockRemoved: BLOCK_REMOVED_FIELDS,
  AllBlocksCleared: [],
};

/** Whether a release has a field. */
export function hasField(release: Release, { since }: WireField): boolean {
  return since === undefined || RELEASES.indexOf(release) >= RELEASES.indexOf(since);
}
