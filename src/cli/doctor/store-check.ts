import { isMooncakeKvError } from "../../errors.js";
import { openStore } from "../../store/index.js";
import { checkStoreUri } from "../../store/open-store.js";
import { askOnly } from "../ask-only.js";
import { type Finding, missing, ok } from "./finding.js";

/** Milliseconds that a store may take to say how it is. */
const HEALTH_MS = 5_000;

/**
 * Opens a store as a command that only asks, and asks how it is. For stores that have no checks of their own: nothing is
 * approved that nobody looked at.
 */
export async function storeCheck(uri: string): Promise<Finding> {
  try {
    const store = await openStore(askOnly(uri));
    try {
      const { healthy, message } = await store.health({ deadlineMs: HEALTH_MS });
      return healthy ? ok("store", message) : missing("store", true, message, remedies(uri));
    } finally {
      await store.close();
    }
  } catch (error) {
    const message = isMooncakeKvError(error) ? error.message : String(error);
    return missing("store", true, message, remedies(uri));
  }
}

/** What is wrong with the URI of a store that can't be opened yet; undefined when nothing is. */
export async function storeUriCheck(uri: string): Promise<Finding | undefined> {
  try {
    await checkStoreUri(uri);
    return undefined;
  } catch (error) {
    const message = isMooncakeKvError(error) ? error.message : String(error);
    return missing("store", true, message, remedies(uri));
  }
}

function remedies(uri: string): readonly string[] {
  if (/^mooncake-admin:/i.test(uri))
    return [
      "Name the HTTP interface of the master (its metrics_port, 9003 unless set otherwise): --store mooncake-admin:http://HOST:9003",
    ];
  if (/^mooncake-native:/i.test(uri))
    return [
      "Name Mooncake's C library and a master: --store 'mooncake-native:/path/libmooncake_store.so?master=HOST:50051', or MOONCAKE_STORE_LIBRARY and MOONCAKE_MASTER",
    ];
  return ["Write the store as the message says, or as embedded: or mooncake:./mooncake.json"];
}
