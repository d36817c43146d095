import { DEVICE, type Holder } from "./block-holders.js";
import { NONE } from "./block-table.js";
import { deviceHit } from "./device-hit.js";
import { type EnginePlan, isPlainPlan } from "./engine-plan.js";
import { offloadHit } from "./offload-hit.js";
import { EngineBlocks, type PromptBlocks } from "./prompt-blocks.js";

/** How much of a prompt an engine would hit. */
export interface EngineMatch {
  readonly engine: string;
  /** Tokens of the prefix. */
  readonly tokens: number;
  /** The same in block hashes of the prompt, whole ones. */
  readonly blocks: number;
}

/** Which media count in a match: in capitals; undefined where all do. */
export type MediaChoice = ReadonlySet<string> | undefined;

/** How many blocks each engine has from the first one on without a gap: counted for all of them at once. */
interface Runs {
  readonly tag: number;
  /** Hashes of one block. */
  readonly scale: number;
  /** Blocks at most. */
  readonly limit: number;
  /** By the engine's number in the table. */
  readonly lengths: Uint32Array;
}

/** One prompt, matched against engines. */
export class PrefixMatch {
  readonly #prompt: PromptBlocks;
  readonly #media: MediaChoice;
  readonly #maxTokens: number;
  readonly #runs: Runs[] = [];

  /** @param maxTokens tokens that a hit may have at most. */
  constructor(prompt: PromptBlocks, media: MediaChoice, maxTokens: number) {
    this.#prompt = prompt;
    this.#media = media;
    this.#maxTokens = maxTokens;
  }

  /** Tokens that the longest hit of an engine may have: never more than the hashes cover, to the last token. */
  maxLength({ hashBlockSize }: Pick<EnginePlan, "hashBlockSize">): number {
    const { numHashes } = this.#prompt;
    return this.#maxTokens === Number.POSITIVE_INFINITY
      ? numHashes * hashBlockSize
      : Math.min(this.#maxTokens, (numHashes + 1) * hashBlockSize - 1);
  }

  /** Tokens that an engine would hit. */
  tokens(holder: Holder, plan: EnginePlan): number {
    if (plan.unusable !== undefined) return 0;
    const maxLength = this.maxLength(plan);
    const onDevice = this.deviceTokens(holder, plan, maxLength);
    const below = this.blocksBelow(holder);
    return below === undefined ? onDevice : offloadHit(plan, below, onDevice, maxLength);
  }

  /** Tokens that an engine would hit in its own cache. */
  deviceTokens(holder: Holder, plan: EnginePlan, maxLength: number): number {
    if (this.#media?.has(DEVICE) === false) return 0;
    return isPlainPlan(plan)
      ? this.#plainTokens(holder, plan, maxLength)
      : deviceHit(plan, this.deviceBlocks(holder), maxLength).hitLength;
  }

  /** What an engine has in its own cache. */
  deviceBlocks(holder: Holder): EngineBlocks {
    return new EngineBlocks(this.#prompt, [holder.deviceTags], holder.slot);
  }

  /** What an engine has on the tiers below that count; undefined where it has published nothing there. */
  blocksBelow({ tagsBelow, slot }: Holder): EngineBlocks | undefined {
    if (tagsBelow.size === 0) return undefined;
    const chosen = [...tagsBelow].filter(([medium]) => this.#media?.has(medium) ?? true);
    if (chosen.length === 0) return undefined;
    return new EngineBlocks(
      this.#prompt,
      chosen.map(([, tags]) => tags),
      slot,
    );
  }

  /** The hit of an engine with one full attention group, which is all that many engines have. */
  #plainTokens(
    holder: Holder,
    { specGroups, hashBlockSize, applyEagle }: EnginePlan,
    maxLength: number,
  ): number {
    const { spec, groupIds, useEagle } = specGroups[0]!;
    const tag = holder.deviceTags.get(groupIds[0]!);
    if (tag === undefined || holder.slot < 0) return 0;
    const { blockSize } = spec;
    const blocks = this.#run(tag, blockSize / hashBlockSize, Math.floor(maxLength / blockSize))[holder.slot]!;
    return (applyEagle && useEagle && blocks > 0 ? blocks - 1 : blocks) * blockSize;
  }

  /** How many blocks of `scale` hashes each engine has from the first one on without a gap, up to `limit`. */
  #run(tag: number, scale: number, limit: number): Uint32Array {
    for (const runs of this.#runs)
      if (runs.tag === tag && runs.scale === scale && runs.limit === limit) return runs.lengths;
    const lengths = this.#countRuns(tag, scale, limit);
    this.#runs.push({ tag, scale, limit, lengths });
    return lengths;
  }

  #countRuns(tag: number, scale: number, limit: number): Uint32Array {
    const prompt = this.#prompt;
    const { table } = prompt;
    const { maskWords, live } = table;
    const blocks = Math.min(limit, Math.floor(prompt.numHashes / scale));
    const runs = new Uint32Array(32 * maskWords);
    const running = live.slice();
    let alive = true;
    for (let block = 0; block < blocks && alive; block++) {
      alive = false;
      const entry = prompt.find(tag, (block + 1) * scale - 1);
      for (let word = 0; word < maskWords; word++) {
        const mask = entry === NONE ? 0 : table.mask(entry, word);
        endRuns(runs, running[word]! & ~mask, word, block);
        running[word]! &= mask;
        if (running[word] !== 0) alive = true;
      }
    }
    for (let word = 0; word < maskWords; word++) endRuns(runs, running[word]!, word, blocks);
    return runs;
  }
}

function endRuns(runs: Uint32Array, ended: number, word: number, length: number): void {
  for (let bits = ended; bits !== 0; bits &= bits - 1)
    runs[32 * word + 31 - Math.clz32(bits & -bits)] = length;
}
