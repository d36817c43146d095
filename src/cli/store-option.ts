import { isMooncakeKvError, MooncakeKvError } from "../errors.js";

/**
 * Checks the URI of `--store` before anything else is done: a misspelt store is told at once, and not after the input was read
 * or the addon was built.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for whatever `openStore` refuses before it starts.
 */
export async function checkStoreOption(uri: string): Promise<void> {
  const { checkStoreUri } = await import("../store/open-store.js");
  try {
    await checkStoreUri(uri);
  } catch (cause) {
    if (!isMooncakeKvError(cause)) throw cause;
    throw new MooncakeKvError(cause.code, `--store: ${cause.message}`, cause.details, { cause });
  }
}
