import type { vllm027, vllm031, vllm033 } from "../../generated/typescript/all-releases.js";
import type { Release } from "../release.js";
import type { RequestTracker } from "./request-tracker.js";

/** The job of a worker by release. */
export interface ReqMetas {
  readonly "vllm-0.27": vllm027.ReqMeta;
  readonly "vllm-0.31": vllm031.ReqMeta;
  readonly "vllm-0.33": vllm033.ReqMeta;
}

/** Fields that every release has and that have no default. */
export type RequiredField = "reqId" | "tokenLenChunk" | "blockIds" | "blockHashes";

/** What a step of a request comes to, whatever the release. */
export interface Step {
  /** Tokens that were saved before the step. */
  readonly savedTokens: number;
  /** Tokens that are saved after it, if it saves. */
  readonly saveTo: number;
  /** Whether the step saves. */
  readonly save: boolean;
  /** Whether this save is the one that publishes the prompt's partial tail. */
  readonly publishTail: boolean;
  /** Whether this is the last job of the prefill, where the caller says. */
  readonly isLastChunk: boolean | null;
  /** Tokens of the prompt, where the caller says. */
  readonly numPromptTokens: number | null;
}

/** How the releases differ: nothing else of the room knows one from another. */
export interface ReleaseRules<R extends Release> {
  /** The fields besides the required ones, with vLLM's defaults. */
  readonly defaults: Omit<ReqMetas[R], RequiredField>;
  /** Names of the options of `fromRequestTracker` that not every release has. */
  readonly options: readonly string[];
  /** The fields that a step fills and that not every release has, or fills alike. */
  fill(tracker: RequestTracker, step: Step): Partial<ReqMetas[R]>;
}

const COMMON = { canSave: null, loadSpec: null, tokenIds: null, numPromptTokens: null };

/** What each release does differently, as data. */
export const RELEASE_RULES: { readonly [R in Release]: ReleaseRules<R> } = {
  "vllm-0.27": {
    defaults: { ...COMMON, isLastChunk: null, partialTailOffloads: null },
    options: ["isLastChunk"],
    fill: (tracker, { isLastChunk }) => ({
      isLastChunk,
      tokenIds: tracker.tokenIds?.length ? [...tracker.tokenIds] : null,
      numPromptTokens: tracker.prefillEndTokens,
    }),
  },
  "vllm-0.31": {
    defaults: { ...COMMON, tokenIdsStart: 0, storeJobId: null, boundaryStateOffloads: null },
    options: [],
    fill: (tracker, step) => ({
      tokenIds: savedTokenIds(tracker, step),
      tokenIdsStart: step.savedTokens,
      numPromptTokens: tracker.prefillEndTokens,
    }),
  },
  "vllm-0.33": {
    defaults: {
      ...COMMON,
      tokenIdsStart: 0,
      prefillEndTokens: null,
      storeJobId: null,
      boundaryPuts: null,
      completedTokenLen: null,
      publishPartialTail: false,
    },
    options: ["savePartialTail", "numPromptTokens"],
    fill: (tracker, step) => ({
      tokenIds: savedTokenIds(tracker, step),
      tokenIdsStart: step.savedTokens,
      numPromptTokens: step.numPromptTokens,
      prefillEndTokens: tracker.prefillEndTokens,
      completedTokenLen: tracker.tokenLen,
      publishPartialTail: step.publishTail && step.save,
    }),
  },
};

function savedTokenIds({ tokenIds }: RequestTracker, { save, savedTokens, saveTo }: Step): number[] | null {
  return save && tokenIds?.length ? tokenIds.slice(savedTokens, saveTo) : null;
}
