import { AdminBackend } from "../../../src/store/admin/admin-backend.js";
import type { AdminStoreOptions } from "../../../src/store/admin/options.js";
import { CheckedStore } from "../../../src/store/checked-store.js";
import type { AdminStore } from "../../../src/store/open-store.js";

/** An admin store, as `openStore` makes it. */
export function adminStore(options: AdminStoreOptions): AdminStore {
  return CheckedStore.over(new AdminBackend(options)) as AdminStore;
}
