import { describe } from "../errors.js";
import { DEFAULT_RELEASE, type Release } from "../release.js";
import { checkCount, complete, ofRelease, requestError } from "./checks.js";
import type { LoadSpec } from "./load-spec.js";
import { RELEASE_RULES, type ReqMetas, type RequiredField, type Step } from "./req-meta-releases.js";
import type { RequestTracker } from "./request-tracker.js";

/** One job of a worker, to save or to load blocks of a request, as release `R` says it. Mirrors vLLM's `ReqMeta`. */
export type ReqMeta<R extends Release = "vllm-0.33"> = ReqMetas[R];

/** A job as a caller may write it: what has a default in vLLM may be left out. */
export type ReqMetaInit<R extends Release = "vllm-0.33"> = Pick<ReqMeta<R>, RequiredField> &
  Partial<ReqMeta<R>>;

/** What decides, besides the tracker, whether a step saves or loads. */
export interface StepOptions<R extends Release = "vllm-0.33"> {
  /** Tokens of a scheduler block. */
  readonly blockSize: number;
  /** What the request may load. */
  readonly loadSpec?: LoadSpec<R> | null | undefined;
  /** Whether saving is out of the question. Default: false. */
  readonly skipSave?: boolean | null | undefined;
  /** Hashes of the request's full blocks. Default: none. */
  readonly blockHashes?: readonly Uint8Array[] | null | undefined;
}

/** Options that vllm-0.27 has besides. */
export interface StepOptions027 extends StepOptions<"vllm-0.27"> {
  /** Whether this is the last job of the prefill; null when that is not known. */
  readonly isLastChunk?: boolean | null | undefined;
}

/** Options that vllm-0.33 has besides. */
export interface StepOptions033 extends StepOptions<"vllm-0.33"> {
  /** Whether the partial block at the end of the prompt is saved too; needs `numPromptTokens`. Default: false. */
  readonly savePartialTail?: boolean | undefined;
  /** Tokens of the prompt. */
  readonly numPromptTokens?: number | null | undefined;
}

interface StepOptionsByRelease {
  readonly "vllm-0.27": StepOptions027;
  readonly "vllm-0.31": StepOptions<"vllm-0.31">;
  readonly "vllm-0.33": StepOptions033;
}

/** The options of `ReqMeta.fromRequestTracker` in release `R`. */
export type FromRequestTrackerOptions<R extends Release = "vllm-0.33"> = StepOptionsByRelease[R];

type AnyOptions = StepOptions<Release> &
  Pick<StepOptions027, "isLastChunk"> &
  Omit<StepOptions033, "loadSpec">;

const REQUIRED: readonly RequiredField[] = ["reqId", "tokenLenChunk", "blockIds", "blockHashes"];

const COMMON_OPTIONS: readonly string[] = ["blockSize", "loadSpec", "skipSave", "blockHashes"];

/** Makers of `ReqMeta` objects. They are plain data: the codecs of their release write them. */
export const ReqMeta: {
  /**
   * A complete job.
   *
   * @throws MooncakeKvError `ERR_REQUEST` for a field that the release does not have, or when the job would both save
   * and load.
   */
  create<R extends Release = "vllm-0.33">(init: ReqMetaInit<R>, release?: R): ReqMeta<R>;

  /**
   * The job of one scheduler step: null when there is nothing to do. A step saves when the tokens reach a block end
   * that was not saved before, and then moves `tracker.numSavedTokens`; a step that loads never saves. Lists are
   * copied: what the tracker learns later does not change the job. Mirrors `ReqMeta.from_request_tracker`.
   *
   * @throws MooncakeKvError `ERR_REQUEST` when `blockSize` is not positive, an option is of another release, or
   * `savePartialTail` is without `numPromptTokens`; the tracker has not changed then.
   */
  fromRequestTracker<R extends Release = "vllm-0.33">(
    tracker: RequestTracker,
    options: FromRequestTrackerOptions<R>,
    release?: R,
  ): ReqMeta<R> | null;
} = { create, fromRequestTracker };

function create<R extends Release = "vllm-0.33">(
  init: ReqMetaInit<R>,
  release: R = DEFAULT_RELEASE as R,
): ReqMeta<R> {
  const meta = complete<ReqMetas[Release]>(
    "ReqMeta",
    REQUIRED,
    ofRelease(RELEASE_RULES, release).defaults,
    init,
  );
  checkCount("tokenLenChunk", meta.tokenLenChunk);
  if (meta.canSave && meta.loadSpec?.canLoad)
    throw requestError(
      `a job of request ${meta.reqId} would both save up to token ${meta.tokenLenChunk} and load up to token ${meta.loadSpec.kvpoolCachedTokens}; it may do one`,
      { reqId: meta.reqId, tokenLenChunk: meta.tokenLenChunk, loadSpec: meta.loadSpec },
    );
  return meta as ReqMeta<R>;
}

function fromRequestTracker<R extends Release = "vllm-0.33">(
  tracker: RequestTracker,
  options: FromRequestTrackerOptions<R>,
  release: R = DEFAULT_RELEASE as R,
): ReqMeta<R> | null {
  const rules = ofRelease(RELEASE_RULES, release);
  checkOptions(options, rules.options, release);
  const { loadSpec, blockHashes, ...given }: AnyOptions = options;
  const load = loadSpec?.canLoad === true;
  const step = planStep(tracker, given, load);
  if (!step.save && loadSpec == null) return null;
  const meta = create<R>(
    {
      reqId: tracker.reqId,
      tokenLenChunk: step.saveTo,
      blockIds: tracker.allocatedBlockIds.map((blockIds) => [...blockIds]),
      blockHashes: [...(blockHashes ?? [])],
      canSave: step.save,
      loadSpec: load ? loadSpec : null,
      ...rules.fill(tracker, step),
    } as ReqMetaInit<R>,
    release,
  );
  if (step.save) {
    tracker.numSavedTokens = step.saveTo;
    tracker.partialTailSent ||= step.publishTail;
  }
  return meta;
}

function planStep(tracker: RequestTracker, options: Omit<AnyOptions, "loadSpec">, load: boolean): Step {
  const { savePartialTail = false, numPromptTokens = null, isLastChunk = null } = options;
  const blockSize = checkCount("blockSize", options.blockSize, 1);
  // As in vLLM, a prompt of 0 tokens or less just has no tail.
  if (numPromptTokens !== null) checkCount("numPromptTokens", numPromptTokens, Number.MIN_SAFE_INTEGER);
  if (savePartialTail && numPromptTokens === null)
    throw requestError(
      "savePartialTail needs numPromptTokens: without it the end of the prompt is not known",
      {
        savePartialTail,
      },
    );
  const { tokenLen, numSavedTokens: savedTokens } = tracker;
  const saveTo = Math.floor(tokenLen / blockSize) * blockSize;
  const nextBoundary = Math.ceil((savedTokens + 1) / blockSize) * blockSize;
  const publishTail =
    savePartialTail &&
    !tracker.partialTailSent &&
    numPromptTokens !== null &&
    numPromptTokens > 0 &&
    numPromptTokens <= tokenLen;
  const save = !options.skipSave && !load && (saveTo >= nextBoundary || publishTail);
  return { savedTokens, saveTo, save, publishTail, isLastChunk, numPromptTokens };
}

function checkOptions(options: object, extra: readonly string[], release: Release): void {
  for (const name of Object.keys(options))
    if (!COMMON_OPTIONS.includes(name) && !extra.includes(name))
      throw requestError(
        `${describe(name)} is no option of release ${release}, which has ${[...COMMON_OPTIONS, ...extra].join(", ")}`,
        { option: name, release },
      );
}
