import type { ExistenceTable } from "../search/existence-table.js";
import type { Search } from "../search/group-search.js";
import type { LongestHit } from "../search/longest-hit.js";
import type { BlockMask } from "../search/reachable-block-mask.js";
import type { KvCacheGroupSpec, LayerSpec } from "../spec/kv-cache-spec.js";
import type { StoreSpecGroup } from "../spec/spec-groups.js";

/** What a lookup needs of a coordinator. `MooncakeStoreCoordinator` has it all. */
export interface PrefixSearch {
  /** The store's groups; their positions are the group ids. */
  readonly kvCacheGroups: readonly KvCacheGroupSpec[];
  /** Groups that are searched together, in the order of the search. */
  readonly specGroups: readonly StoreSpecGroup[];
  /** Tokens that one hash covers. */
  readonly hashBlockSize: number;
  /** Whether hits may end inside a block, at a hash. */
  readonly enablePartialHashHits: boolean;
  /** The longest length up to `length` at which a hit may end. */
  alignLookupLength(length: number): number;
  /** The spec with which a group is searched. */
  coverageSpec(groupId: number): LayerSpec;
  /** Which of the first `endBlock` blocks of a group can matter to a hit. */
  lookupMaskOf(groupId: number, endBlock: number): BlockMask;
  /** The longest hit by what is known, or the blocks that must be known first. */
  search(
    maxLength: number,
    existence: ExistenceTable,
    options: { readonly applyEagle: boolean; readonly lengthOnly: boolean },
  ): Search<LongestHit>;
}
