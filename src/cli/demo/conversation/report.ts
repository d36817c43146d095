import { bar } from "../report.js";
import type { ConversationResult, TurnResult } from "./run-conversation.js";

const BAR_WIDTH = 20;

/** What a conversation came to, for a person. */
export function conversationLines(result: ConversationResult): string[] {
  const { promptTokens, hitTokens, savedBytes, loadedBytes, jobs, seconds } = result;
  const refused = result.turns.reduce((sum, { refusedObjects }) => sum + refusedObjects, 0);
  return [
    `a conversation: sliding window ${result.slidingWindow} and full attention, engines A and B of TP ${result.tpSize} in turn`,
    `turn     ${"".padEnd(BAR_WIDTH + 2)}    hit of prompt    loaded     saved  jobs   lookup     load     turn`,
    ...result.turns.flatMap(turnLines),
    ...(refused > 0 ? [`${refused} objects were refused by the store`] : []),
    `${hitTokens} of ${promptTokens} prompt tokens hit, ${megabytes(loadedBytes)} loaded, ${megabytes(savedBytes)} saved, ${jobs} jobs, ${seconds.toFixed(2)} s; every loaded byte is equal`,
  ];
}

function turnLines(result: TurnResult): string[] {
  const { turn, engine, promptTokens, hitTokens, loadedBytes, savedBytes, jobs, seconds } = result;
  const columns = [
    `${turn} on ${engine}  ${bar({ tokens: promptTokens, hitTokens }, BAR_WIDTH)}`,
    `${hitTokens} of ${promptTokens}`.padStart(16),
    megabytes(loadedBytes).padStart(9),
    megabytes(savedBytes).padStart(9),
    String(jobs.save + jobs.load).padStart(5),
    ...[seconds.lookup, seconds.load, seconds.total].map((time) => milliseconds(time).padStart(8)),
  ];
  return [columns.join(" "), ...notes(result).map((note) => `        ${note}`)];
}

function notes({ user, preemptedAfter, lostToken, admissions, computedTokens }: TurnResult): string[] {
  const last = admissions.at(-1)!;
  return [
    ...(user > 1 ? ["another user: only the instructions are the same"] : []),
    ...(preemptedAfter === null
      ? []
      : [
          `preempted after ${preemptedAfter} tokens of its answer; resumed with ${last.hitTokens} of ${last.tokens} tokens from the store`,
        ]),
    ...(lostToken === null
      ? []
      : [
          `${admissions[0]!.hitTokens} tokens found, but the block of token ${lostToken} got lost; ${last.hitTokens} loaded, ${computedTokens} computed`,
        ]),
  ];
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

function milliseconds(seconds: number): string {
  return `${(seconds * 1000).toFixed(1)} ms`;
}
