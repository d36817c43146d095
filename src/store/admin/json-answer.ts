import { describe } from "../../errors.js";
import { CODE } from "../shared/codes.js";
import { AdminFailure } from "./failure.js";
import type { HttpAnswer } from "./http-client.js";
import { type ExactJson, type ExactJsonObject, parseExactJson } from "./json.js";
import { object } from "./json-fields.js";

/** The object that an answer with status 200 is. @throws AdminFailure for any other answer. */
export function jsonObject(path: string, answer: HttpAnswer, mostValues: number): ExactJsonObject {
  if (answer.status !== 200) throw refusal(path, answer);
  let parsed: ExactJson;
  try {
    parsed = parseExactJson(answer.body.toString("utf8"), mostValues);
  } catch (error) {
    throw new AdminFailure(
      CODE.RPC_FAIL,
      `${path} answers with something that is no JSON: ${(error as Error).message}`,
    );
  }
  return object(parsed, `the answer of ${path}`);
}

/** The same for an answer that says itself whether it is one. @throws AdminFailure with its code for one that is not. */
export function successful(path: string, answer: HttpAnswer, mostValues: number): ExactJsonObject {
  const body = jsonObject(path, answer, mostValues);
  if (body.get("success") !== true) throw refusal(path, answer);
  return body;
}

/** An answer without success has a code and a message, and is short. */
const MOST_VALUES_OF_REFUSAL = 64;
const MOST_BYTES_OF_REFUSAL = 4096;

/** What an answer without success means: its own code where it has one. */
export function refusal(path: string, { status, body }: HttpAnswer): AdminFailure {
  const said = body.toString("utf8", 0, MOST_BYTES_OF_REFUSAL);
  let parsed: ExactJson;
  try {
    parsed = parseExactJson(said, MOST_VALUES_OF_REFUSAL);
  } catch {
    parsed = null;
  }
  if (parsed instanceof Map) {
    const code = parsed.get("error_code");
    const message = parsed.get("error_message") ?? parsed.get("error");
    const known = typeof code === "bigint" && code < 0n && code > -(2n ** 31n);
    if (known || typeof message === "string")
      return new AdminFailure(
        known ? Number(code) : status === 400 ? CODE.INVALID_PARAMS : CODE.RPC_FAIL,
        `${path} answers ${describe(message, 200)}`,
      );
  }
  return new AdminFailure(
    CODE.RPC_FAIL,
    `${path} answers with HTTP status ${status}: ${describe(said, 200)}`,
  );
}
