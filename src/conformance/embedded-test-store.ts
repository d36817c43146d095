import type { NativeStoreOptions } from "../native/addon.js";
import { CheckedStore } from "../store/checked-store.js";
import { EmbeddedBackend } from "../store/embedded/embedded-backend.js";
import type { EmbeddedStoreOptions } from "../store/embedded/options.js";
import type { EmbeddedStore } from "../store/open-store.js";

/**
 * An embedded store with what only tests need: `overrides` say what no URI can, such as a capacity of 0, into which nothing
 * fits.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for a bad option, `ERR_NATIVE` when the addon can't be loaded, `ERR_STORE` when the
 * system refuses the memory.
 */
export function openEmbeddedTestStore(
  options: EmbeddedStoreOptions = {},
  overrides: Partial<NativeStoreOptions> = {},
): EmbeddedStore {
  return CheckedStore.over(new EmbeddedBackend(options, overrides)) as EmbeddedStore;
}
