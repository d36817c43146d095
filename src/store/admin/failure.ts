import { CODE } from "../shared/codes.js";

/** Why a request, or the read of one object, failed: one of Mooncake's codes and a sentence. Never leaves the store. */
export class AdminFailure extends Error {
  readonly storeCode: number;

  constructor(storeCode: number, reason: string) {
    super(reason);
    this.name = "AdminFailure";
    this.storeCode = storeCode;
  }
}

/** What went wrong, whatever was thrown; unforeseen errors become -1 (INTERNAL_ERROR). */
export function adminFailure(error: unknown): AdminFailure {
  if (error instanceof AdminFailure) return error;
  return new AdminFailure(CODE.INTERNAL_ERROR, error instanceof Error ? error.message : String(error));
}

/** The failure of a call whose deadline has come. */
export function deadlinePassed(what: string, deadlineMs: number): AdminFailure {
  return new AdminFailure(CODE.RPC_TIMEOUT, `${what} had no answer within the deadline of ${deadlineMs} ms`);
}
