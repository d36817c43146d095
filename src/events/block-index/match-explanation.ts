import type { BlockExistence } from "../../coordinator/search/existence-table.js";
import { findGroupHit } from "../../coordinator/search/group-hit.js";
import type { GroupHit } from "../../coordinator/search/group-search.js";
import { isFullAttention, isSlidingWindow, type LayerSpec } from "../../coordinator/spec/kv-cache-spec.js";
import type { StoreSpecGroup } from "../../coordinator/spec/spec-groups.js";
import type { Holder } from "./block-holders.js";
import { deviceHit } from "./device-hit.js";
import type { EnginePlan } from "./engine-plan.js";
import { offloadHit } from "./offload-hit.js";
import type { PrefixMatch } from "./prefix-match.js";
import type { EngineBlocks } from "./prompt-blocks.js";

/** A block of a prompt. */
export interface PromptBlock {
  /** Its number among the group's blocks of the prompt, from 0. */
  readonly block: number;
  /** The number of the prompt's hash that ends it, from 0. */
  readonly hashIndex: number;
  /** Tokens of the prompt before it. */
  readonly tokens: number;
}

/** What one KV cache group of an engine has of a prompt in the engine's own cache. */
export interface GroupExplanation {
  readonly groupIdx: number;
  readonly kind: LayerSpec["kind"];
  /** Tokens of one block. */
  readonly blockSize: number;
  /** Tokens of the sliding window or of one attention chunk; null for other kinds. */
  readonly window: number | null;
  /** Whether it drops its last matched block for speculative decoding. */
  readonly eagle: boolean;
  /** Blocks of the prompt, as far as the hit may reach. */
  readonly blocks: number;
  /** Those of them that are held. */
  readonly held: number;
  /** Tokens of the longest prefix that this group alone allows. */
  readonly tokens: number;
  /** The block that ends it; null where nothing is missing. */
  readonly missing: PromptBlock | null;
}

/**
 * A rule that made a match shorter. `missing`: a group that needs every block lacks one. `window`, `state`, `chunk`: a
 * group lacks blocks of its sliding window, its recurrent state, or its attention chunk at that end. `step`: hits end at
 * multiples of the step. `eagle`: speculative decoding computes the last block anew.
 */
export interface MatchShortening {
  readonly rule: "missing" | "window" | "state" | "chunk" | "step" | "eagle";
  /** By how many tokens. */
  readonly tokens: number;
  /** The group; null where the rule is not one of a group. */
  readonly groupIdx: number | null;
}

/** Why an engine would hit as much of a prompt as it would. */
export interface MatchExplanation {
  readonly engine: string;
  /** Tokens that it would hit: `maxTokens`, less what the rules took, and what tiers below the GPU add. */
  readonly tokens: number;
  /** The same in block hashes of the prompt. */
  readonly blocks: number;
  /** Tokens that it would hit in its own cache. */
  readonly deviceTokens: number;
  /** Tokens that the hit could have at most. */
  readonly maxTokens: number;
  /** Tokens; every hit in the engine's own cache is a multiple of it. */
  readonly step: number;
  /** Whether the groups are configured, or as far known as events have told of them. */
  readonly configured: boolean;
  readonly groups: readonly GroupExplanation[];
  /** In the order in which they apply; their tokens and `deviceTokens` add up to `maxTokens`. */
  readonly shortened: readonly MatchShortening[];
  /** Why no hit can be said of the engine; null where one can. */
  readonly unusable: string | null;
}

/** Explains what `PrefixMatch.tokens` says of an engine. */
export function explainMatch(match: PrefixMatch, holder: Holder): MatchExplanation {
  const { plan, engine, config } = holder;
  const base = { engine, configured: config.groups !== undefined };
  if (plan === undefined || plan.unusable !== undefined) {
    const maxTokens = match.maxLength(config);
    return {
      ...base,
      tokens: 0,
      blocks: 0,
      deviceTokens: 0,
      maxTokens,
      step: plan?.step ?? config.hashBlockSize,
      groups: [],
      shortened: maxTokens > 0 ? [{ rule: "missing", tokens: maxTokens, groupIdx: null }] : [],
      unusable: plan?.unusable ?? null,
    };
  }
  const maxTokens = match.maxLength(plan);
  const existence = match.deviceBlocks(holder);
  const groups = plan.specGroups.flatMap((group) => explainGroups(plan, group, existence, maxTokens));
  const deviceTokens = match.deviceTokens(holder, plan, maxTokens);
  const below = match.blocksBelow(holder);
  const tokens = below === undefined ? deviceTokens : offloadHit(plan, below, deviceTokens, maxTokens);
  return {
    ...base,
    tokens,
    blocks: Math.floor(tokens / plan.hashBlockSize),
    deviceTokens,
    maxTokens,
    step: plan.step,
    groups: groups.sort((a, b) => a.groupIdx - b.groupIdx),
    shortened: shortenings(plan, groups, existence, maxTokens, deviceTokens),
    unusable: null,
  };
}

/** The members of a spec group, each by itself. */
function explainGroups(
  plan: EnginePlan,
  group: StoreSpecGroup,
  existence: EngineBlocks,
  maxLength: number,
): GroupExplanation[] {
  const { spec, useEagle } = group;
  const { blockSize } = spec;
  const scale = blockSize / plan.hashBlockSize;
  const blocks = Math.floor(maxLength / blockSize);
  return group.groupIds.map((groupIdx) => {
    const member = { ...group, groupIds: [groupIdx] };
    const tokens = aloneTokens(plan, member, existence, maxLength);
    let held = 0;
    for (let block = 0; block < blocks; block++) if (existence.has(groupIdx, (block + 1) * scale - 1)) held++;
    return {
      groupIdx,
      kind: spec.kind,
      blockSize,
      window: isSlidingWindow(spec)
        ? spec.slidingWindow
        : spec.kind === "chunked_local"
          ? spec.attentionChunkSize
          : null,
      eagle: plan.applyEagle && useEagle,
      blocks,
      held,
      tokens,
      missing: missingBlock(member, existence, tokens, blocks, scale),
    };
  });
}

/** Tokens that a group alone would allow, in its own blocks. */
function aloneTokens(
  plan: EnginePlan,
  group: StoreSpecGroup,
  existence: BlockExistence,
  maxLength: number,
): number {
  const hit = findGroupHit({
    group,
    existence,
    hashBlockSize: plan.hashBlockSize,
    alignmentTokens: plan.fine ? plan.hashBlockSize : group.spec.blockSize,
    maxLength,
    dropEagleBlock: false,
  }) as GroupHit;
  return hit.hitLength;
}

/** What ends the match of a group: the first block that it lacks, or, where the end is what counts, the last one. */
function missingBlock(
  { spec, groupIds }: StoreSpecGroup,
  existence: EngineBlocks,
  tokens: number,
  blocks: number,
  scale: number,
): PromptBlock | null {
  const found = Math.floor(tokens / spec.blockSize);
  if (found >= blocks) return null;
  let block = found;
  if (!isFullAttention(spec)) {
    block = blocks - 1;
    while (block > 0 && existence.has(groupIds[0]!, (block + 1) * scale - 1)) block--;
  }
  return { block, hashIndex: (block + 1) * scale - 1, tokens: block * spec.blockSize };
}

function shortenings(
  plan: EnginePlan,
  groups: readonly GroupExplanation[],
  existence: EngineBlocks,
  maxTokens: number,
  deviceTokens: number,
): MatchShortening[] {
  const shortened: MatchShortening[] = [];
  let left = maxTokens;
  const cut = (rule: MatchShortening["rule"], to: number, groupIdx: number | null): void => {
    // What a rule gives back, another one took too much: the sum stays right.
    const end = Math.max(to, deviceTokens);
    if (end >= left) return;
    shortened.push({ rule, tokens: left - end, groupIdx });
    left = end;
  };
  const whole = groups.filter(({ kind }) => kind === "full" || kind === "mla" || kind === "rswa");
  const shortest = whole.reduce<GroupExplanation | undefined>(
    (least, group) => (least === undefined || group.tokens < least.tokens ? group : least),
    undefined,
  );
  if (shortest?.missing) cut("missing", shortest.tokens, shortest.groupIdx);
  cut("step", left - (left % plan.step), null);
  const { hitLength, limitedBy } = deviceHit(plan, existence, maxTokens, false);
  const limiting = groups.find(({ groupIdx }) => groupIdx === limitedBy[0]);
  cut(ruleOf(limiting?.kind), hitLength, limiting?.groupIdx ?? null);
  cut("eagle", deviceTokens, null);
  return shortened;
}

function ruleOf(kind: LayerSpec["kind"] | undefined): MatchShortening["rule"] {
  switch (kind) {
    case "swa":
    case "swa_mla":
      return "window";
    case "mamba":
      return "state";
    case "chunked_local":
      return "chunk";
    default:
      return "missing";
  }
}
