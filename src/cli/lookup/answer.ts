import type { LookupResult } from "../../coordinator/index.js";
import type { MooncakeKvError } from "../../errors.js";
import type { LookupKeyClient } from "../../lookup/index.js";
import { type CallOptions, type KvStore, StoreError } from "../../store/index.js";
import type { LookupEngine } from "./engine-groups.js";
import type { Prompt } from "./prompt.js";

/** What a lookup of the command line says. */
export interface Answer {
  /** Tokens of the longest prefix; null when that is unknown. */
  readonly hitTokens: number | null;
  /** Why it is unknown. */
  readonly unknown?: string | undefined;
  /** Whether something failed: the command then ends with 1. */
  readonly failed: boolean;
  readonly tailKeyBoundaries: readonly (readonly [groupId: number, numTokens: number])[];
  /** Keys that the store was asked about, and in how many questions; null where an engine asks it. */
  readonly keysAsked: number | null;
  readonly questions: number | null;
  /** Groups that made the hit shorter; null where an engine searches. */
  readonly limitedBy: readonly number[] | null;
  /** Why there can be no hit, whatever is stored; undefined where there can. */
  readonly reason?: string | undefined;
}

/** The answer when there is nothing to ask about; undefined when there is. */
export function nothingToAsk({ blockHashes, blockSize, numTokens }: Prompt): Answer | undefined {
  if (blockHashes.length > 0) return undefined;
  return unasked(
    numTokens === undefined || numTokens === 0
      ? "no tokens"
      : `no full block: ${numTokens} tokens, and a block has ${blockSize}`,
    false,
  );
}

/** The answer when no key was asked for: because there is none to ask for, or because the store can't be opened, a failure. */
export function unasked(unknown: string, failed: boolean): Answer {
  return {
    hitTokens: null,
    unknown,
    failed,
    tailKeyBoundaries: [],
    keysAsked: 0,
    questions: 0,
    limitedBy: [],
  };
}

/**
 * Tokens to ask for. A hit never covers the last token, since it has to be computed; of a prompt that is known by its
 * hashes only, more tokens may follow, so that all its blocks can be hit.
 */
export function tokensToAsk({ blockHashes, blockSize, numTokens }: Prompt): number {
  return numTokens ?? blockHashes.length * blockSize + 1;
}

/** How long a store may take. */
export interface AskLimits {
  /** Ends the lookup. */
  readonly signal?: AbortSignal | undefined;
  /** Options of each question. */
  readonly callOptions?: (() => CallOptions) | undefined;
}

/** Asks a store itself. Each key that exists gets a lease by that, as by any question about existence. */
export async function askStore(
  store: Pick<KvStore, "exists">,
  { coordinator, keyPrefixes }: LookupEngine,
  prompt: Prompt,
  { signal, callOptions }: AskLimits = {},
): Promise<Answer> {
  const result: LookupResult = await coordinator.lookup({
    numTokens: tokensToAsk(prompt),
    blockHashes: prompt.blockHashes,
    keyPrefixes,
    exists: (keys) => store.exists(keys, callOptions?.()),
    signal,
  });
  const { failure } = result;
  const reason =
    failure || result.hitLength > 0 ? undefined : await tooShort(coordinator, keyPrefixes, prompt);
  return {
    ...(reason !== undefined && { reason }),
    hitTokens: failure ? null : result.hitLength,
    ...(failure && { unknown: reasonOf(failure.error) }),
    failed: failure !== undefined,
    tailKeyBoundaries: boundaries(result),
    keysAsked: result.keysAsked,
    questions: result.questions,
    limitedBy: result.limitedBy,
  };
}

/** Why a prompt has no hit even where everything is stored; undefined where it would have one. */
async function tooShort(
  coordinator: LookupEngine["coordinator"],
  keyPrefixes: LookupEngine["keyPrefixes"],
  prompt: Prompt,
): Promise<string | undefined> {
  const numTokens = tokensToAsk(prompt);
  const full = await coordinator.lookup({
    numTokens,
    blockHashes: prompt.blockHashes,
    keyPrefixes,
    exists: (keys) => new Uint8Array(keys.length).fill(1),
  });
  if (full.hitLength > 0) return undefined;
  const again = coordinator.eagleGroupIds.size > 0 ? ", and the last matched block is computed again" : "";
  return (
    `a hit ends at a multiple of ${coordinator.alignmentTokens} tokens and never holds the last token${again}: ` +
    `${prompt.numTokens ?? numTokens - 1} tokens are too few for one`
  );
}

/** Asks a running engine. */
export async function askEngine(client: LookupKeyClient, prompt: Prompt): Promise<Answer> {
  const answer = await client.lookup("cli", tokensToAsk(prompt), prompt.blockHashes);
  const { failure } = answer;
  return {
    hitTokens: failure ? null : answer.hitLength,
    ...(failure && { unknown: failure.error.message }),
    failed: failure !== undefined,
    tailKeyBoundaries: boundaries(answer),
    keysAsked: null,
    questions: null,
    limitedBy: null,
  };
}

/** Why a store failed, without the keys, of which nobody asked. */
function reasonOf(error: MooncakeKvError): string {
  if (!(error instanceof StoreError)) return error.message;
  const { code, name, meaning } = error.storeCode;
  const reason = error.failures.find((failure) => failure.reason !== undefined)?.reason;
  return `${meaning} (${name}, ${code})${reason === undefined ? "" : `: ${reason}`}`;
}

function boundaries({ tailKeyBoundaries }: Pick<LookupResult, "tailKeyBoundaries">): [number, number][] {
  return tailKeyBoundaries.map(({ groupId, numTokens }) => [groupId, numTokens]);
}

/** Characters of the bar. */
const BAR = 40;

/** An answer in words, one fact a line. */
export function answerLines(answer: Answer, prompt: Prompt): string[] {
  const { hitTokens, keysAsked, questions, limitedBy } = answer;
  const { blockSize } = prompt;
  if (hitTokens === null) return [`unknown: ${answer.unknown}`];
  const total = prompt.numTokens ?? prompt.blockHashes.length * blockSize;
  const share = hitTokens / total;
  const filled = Math.floor(share * BAR);
  const lines = [
    `${hitTokens} of ${total} tokens`,
    `[${"#".repeat(filled)}${".".repeat(BAR - filled)}] ${Math.floor(share * 100)}%`,
  ];
  if (keysAsked !== null)
    lines.push(
      `${keysAsked} ${keysAsked === 1 ? "key" : "keys"} asked in ${questions} ${questions === 1 ? "question" : "questions"}`,
    );
  if (answer.reason !== undefined) lines.push(answer.reason);
  else if (limitedBy && limitedBy.length > 0) lines.push(`limited by group ${limitedBy.join(", ")}`);
  return lines;
}
