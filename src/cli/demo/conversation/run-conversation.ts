import { BlockHasher } from "../../../hash/block-hasher.js";
import type { KvStore } from "../../../store/kv-store.js";
import type { DemoWork } from "../demo-work.js";
import { refuseDifferences } from "../kv-pattern.js";
import { FULL_GROUP, GPT_OSS_20B } from "../model.js";
import type { DemoRequest } from "./demo-request.js";
import { HybridEngine, type Turn } from "./hybrid-engine.js";
import type { Admission, TurnMeter } from "./turn-meter.js";

const TP_SIZE = 2;
/** Tokens of the instructions that every conversation begins with, and of what a user and the model say in a turn. */
const INSTRUCTIONS = 900;
const QUESTION = 180;
const ANSWER = 40;
const TURNS = 4;
/** The turn that loses its blocks while the model answers, after so many tokens. */
const PREEMPTED_TURN = 2;
const PREEMPT_AFTER = 20;
/** The turn in which the store loses a block between lookup and load: that which holds this token. */
const LOSSY_TURN = 3;
const LOST_TOKEN = 600;

/** What the second part of the demo found out. Bytes and jobs are those of all ranks. */
export interface ConversationResult {
  readonly model: string;
  readonly slidingWindow: number;
  readonly tpSize: number;
  readonly turns: readonly TurnResult[];
  readonly promptTokens: number;
  readonly hitTokens: number;
  readonly savedBytes: number;
  readonly loadedBytes: number;
  readonly jobs: number;
  readonly seconds: number;
  /** 32-bit words that differ from what was saved. 0, or the demo has failed. */
  readonly differences: number;
}

/** One turn. */
export interface TurnResult {
  readonly turn: number;
  readonly user: number;
  readonly engine: "A" | "B";
  readonly promptTokens: number;
  /** Tokens of the prompt that came from the store. */
  readonly hitTokens: number;
  readonly computedTokens: number;
  readonly savedBytes: number;
  readonly loadedBytes: number;
  readonly refusedObjects: number;
  readonly jobs: { readonly save: number; readonly load: number };
  /** Time that the request waited for lookups and for loads, and until everything of it was stored. */
  readonly seconds: { readonly lookup: number; readonly load: number; readonly total: number };
  /** Tokens of the answer that were there at the preemption; null where there was none. */
  readonly preemptedAfter: number | null;
  /** Token of the block that got lost; null where none did. */
  readonly lostToken: number | null;
  /** Every time that the store was asked. */
  readonly admissions: readonly Admission[];
}

interface PlannedTurn extends Turn {
  readonly user: number;
}

/**
 * A conversation of several turns on two engines with two cache groups, each of which only knows what is in the store;
 * then another user with the same instructions. One turn is preempted, another loses a block.
 *
 * @throws MooncakeKvError `ERR_STORE` when the store can't do what is needed, or bytes differ.
 */
export async function runConversation(work: DemoWork): Promise<ConversationResult> {
  const { store, tokens, kernel, cachePrefix, step } = work;
  const model = GPT_OSS_20B;
  const longest = INSTRUCTIONS + TURNS * (QUESTION + ANSWER);
  const engine = {
    ...{ store, model, cachePrefix, tpSize: TP_SIZE },
    hasher: new BlockHasher({ blockSize: model.blockSize, kernel }),
    // Both groups may hold a block of every token, while jobs of the steps before hold them too.
    numBlocks: 2 * Math.ceil(longest / model.blockSize) + 2,
  };
  const engines: HybridEngine[] = [];
  const turns: TurnResult[] = [];
  let differences = 0;
  try {
    for (let i = 0; i < 2; i++) engines.push(await HybridEngine.create(engine));
    for (const [index, planned] of plan(tokens).entries()) {
      await step(`turn ${index + 1} of ${TURNS + 1}`);
      const serving = engines[index % 2]!;
      let lostToken: number | null = null;
      const loseBlock = async (request: DemoRequest, offered: number) => {
        if (index !== LOSSY_TURN || offered <= LOST_TOKEN) return;
        await removeBlock(store, serving, request);
        lostToken = LOST_TOKEN;
      };
      const meter = await serving.run({ ...planned, beforeLoad: loseBlock });
      differences += meter.differences;
      refuseDifferences(differences);
      turns.push(turnResult(index, planned, lostToken, meter));
    }
  } finally {
    for (const each of engines) await each.close();
  }
  return summary(turns, differences);
}

/** The turns: each prompt is all that was said before, and a question. */
function plan(tokens: Uint32Array): PlannedTurn[] {
  const said = (from: number, count: number) => [...tokens.subarray(from, from + count)];
  let context = said(0, INSTRUCTIONS);
  const turns: PlannedTurn[] = [];
  for (let index = 0; index <= TURNS; index++) {
    const other = index === TURNS;
    const from = INSTRUCTIONS + index * (QUESTION + ANSWER);
    const prompt = [...(other ? said(0, INSTRUCTIONS) : context), ...said(from, QUESTION)];
    const answer = said(from + QUESTION, ANSWER);
    turns.push({
      ...{ requestId: `turn-${index + 1}`, user: other ? 2 : 1, prompt, answer },
      preemptAfter: index === PREEMPTED_TURN ? PREEMPT_AFTER : undefined,
    });
    context = [...prompt, ...answer];
  }
  return turns;
}

/** Removes what rank 0 has stored of one block of the full-attention layers. */
async function removeBlock(store: KvStore, engine: HybridEngine, request: DemoRequest): Promise<void> {
  const { lookupKeyPrefixes } = engine.ranks[0]!.worker.settings.groups!;
  const hash = request.blockHashes[Math.floor(LOST_TOKEN / GPT_OSS_20B.blockSize)]!;
  const key = `${lookupKeyPrefixes[FULL_GROUP]![0]}@${Buffer.from(hash).toString("hex")}`;
  (await store.remove([key], { force: true })).throwIfFailed();
}

function turnResult(
  index: number,
  { user, prompt, preemptAfter }: PlannedTurn,
  lostToken: number | null,
  meter: TurnMeter,
): TurnResult {
  const { computedTokens, savedBytes, loadedBytes, refusedObjects, jobs, seconds, admissions } = meter;
  return {
    turn: index + 1,
    user,
    engine: index % 2 === 0 ? "A" : "B",
    promptTokens: prompt.length,
    hitTokens: admissions.find(({ loaded }) => loaded)!.hitTokens,
    computedTokens,
    savedBytes,
    loadedBytes,
    refusedObjects,
    jobs,
    seconds,
    preemptedAfter: preemptAfter ?? null,
    lostToken,
    admissions,
  };
}

function summary(turns: readonly TurnResult[], differences: number): ConversationResult {
  const sum = (number: (turn: TurnResult) => number) =>
    turns.reduce((total, turn) => total + number(turn), 0);
  return {
    model: GPT_OSS_20B.model,
    slidingWindow: GPT_OSS_20B.slidingWindow,
    tpSize: TP_SIZE,
    turns,
    promptTokens: sum(({ promptTokens }) => promptTokens),
    hitTokens: sum(({ hitTokens }) => hitTokens),
    savedBytes: sum(({ savedBytes }) => savedBytes),
    loadedBytes: sum(({ loadedBytes }) => loadedBytes),
    jobs: sum(({ jobs }) => jobs.save + jobs.load),
    seconds: sum(({ seconds }) => seconds.total),
    differences,
  };
}
