import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { addonCandidates, packageRoot } from "../../../src/native/locations.js";

/** Our own `libmooncake_store.so`, which is built next to the addon. @throws Error where it is not built. */
export function ownLibrary(): string {
  const candidates = addonCandidates(packageRoot(), process.env).map((addon) =>
    join(dirname(addon), "libmooncake_store.so"),
  );
  const library = candidates.find(existsSync);
  if (library === undefined) throw new Error(`none of ${candidates.join(", ")} is built`);
  return library;
}
