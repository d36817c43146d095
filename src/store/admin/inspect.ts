import type { KeyList } from "../keys.js";
import type { AdminClient } from "./admin-client.js";
import type { KeyAnswer } from "./answers.js";
import {
  batchQueries,
  type CarriedKey,
  encodeForBatchQuery,
  keyBytes,
  notForBatchQuery,
} from "./carried-keys.js";
import type { Deadline } from "./deadline.js";
import { type AdminFailure, adminFailure, deadlinePassed } from "./failure.js";
import { inLanes } from "./in-lanes.js";
import { Outcomes } from "./outcomes.js";

const INVALID_PARAMS = -600;
const INVALID_REPLICA = -702;
const OBJECT_NOT_FOUND = -704;

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
  await inLanes(batchQueries(carried(keys, outcomes)), lanes, async (query) => {
    const answers = await ask(client, query, deadline);
    for (const key of query) {
      if (answers instanceof Map) settle(outcomes, key, answers.get(key.text), found);
      else outcomes.failWith(key.index, answers);
    }
  });
  return outcomes;
}

/** The keys to ask for; those that no query can carry are settled instead. */
function* carried(keys: KeyList, outcomes: Outcomes): Generator<CarriedKey> {
  for (let index = 0; index < keys.length; index++) {
    const bytes = keyBytes(keys, index);
    const refusal = notForBatchQuery(bytes);
    if (bytes.length === 0) outcomes.fail(index, OBJECT_NOT_FOUND);
    else if (refusal !== undefined) outcomes.fail(index, INVALID_PARAMS, refusal);
    else yield { index, text: keys.at(index), encoded: encodeForBatchQuery(bytes) };
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
  if (answer === undefined) outcomes.fail(key.index, -1, "the master's answer leaves the key out");
  else if (answer.code !== 0) outcomes.fail(key.index, answer.code, answer.reason);
  else if (answer.memory.length + answer.stored.length === 0)
    outcomes.fail(key.index, INVALID_REPLICA, "the master knows the object, but no replica of it");
  else outcomes.succeed(key.index, found(answer, key.index));
}
