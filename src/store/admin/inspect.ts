import { CODE } from "../shared/codes.js";
import type { Deadline } from "../shared/deadline.js";
import type { KeyList } from "../shared/keys.js";
import { inLanes } from "../shared/lanes.js";
import type { AdminClient } from "./admin-client.js";
import {
  batchQueries,
  type CarriedKey,
  encodeForBatchQuery,
  keyBytes,
  keyText,
  notForBatchQuery,
} from "./carried-keys.js";
import { type AdminFailure, adminFailure, deadlinePassed } from "./failure.js";
import type { KeyAnswer } from "./key-answers.js";
import { Outcomes } from "./outcomes.js";

/**
 * Asks the master about every key, several queries at a time, without a lease. `found` turns what is known of an object
 * that can be read into the number of its key. A query that fails fails its keys alone.
 */
export async function inspectKeys(
  client: AdminClient,
  keys: KeyList,
  lanes: number,
  found: (answer: KeyAnswer, index: number) => bigint,
  deadline: Deadline,
): Promise<Outcomes> {
  const outcomes = new Outcomes(keys.length);
  await inLanes(batchQueries(carried(keys, outcomes, deadline)), lanes, async (query) => {
    const answers = await ask(client, query, deadline);
    for (const key of query) {
      if (answers instanceof Map) settle(outcomes, key, answers.get(key.text), found);
      else outcomes.failWith(key.index, answers);
    }
  });
  return outcomes;
}

/** The keys to ask for; those that no query can carry are settled instead, and those for which there is no time. */
function* carried(keys: KeyList, outcomes: Outcomes, deadline: Deadline): Generator<CarriedKey> {
  const late = deadlinePassed("the call", deadline.ms);
  for (let index = 0; index < keys.length; index++) {
    const bytes = keyBytes(keys, index);
    const refusal = notForBatchQuery(bytes);
    if (bytes.length === 0) outcomes.fail(index, CODE.OBJECT_NOT_FOUND);
    else if (refusal !== undefined) outcomes.fail(index, CODE.INVALID_PARAMS, refusal);
    else if (deadline.expired) outcomes.failWith(index, late);
    else yield { index, bytes: bytes.length, text: keyText(bytes), encoded: encodeForBatchQuery(bytes) };
  }
}

async function ask(
  client: AdminClient,
  query: readonly CarriedKey[],
  deadline: Deadline,
): Promise<Map<string, KeyAnswer> | AdminFailure> {
  if (deadline.expired) return deadlinePassed("the call", deadline.ms);
  try {
    return await client.queryBatch(query, deadline);
  } catch (error) {
    return adminFailure(error);
  }
}

function settle(
  outcomes: Outcomes,
  key: CarriedKey,
  answer: KeyAnswer | undefined,
  found: (answer: KeyAnswer, index: number) => bigint,
): void {
  if (answer === undefined)
    outcomes.fail(key.index, CODE.INTERNAL_ERROR, "the master's answer leaves the key out");
  else if (answer.code !== CODE.OK) outcomes.fail(key.index, answer.code, answer.reason);
  else if (answer.memory.length + answer.stored.length === 0)
    outcomes.fail(key.index, CODE.INVALID_REPLICA, "the master knows the object, but no replica of it");
  else outcomes.succeed(key.index, found(answer, key.index));
}
