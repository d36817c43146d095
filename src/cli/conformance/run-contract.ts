import { describe, MooncakeKvError } from "../../errors.js";
import {
  type ContractBackend,
  type ContractReport,
  embeddedBackend,
  runContractFile,
} from "../../testing/contract/index.js";

/** The backends under which the contract can be replayed, by the scheme of their URI. */
const BACKENDS: Readonly<Record<string, () => ContractBackend>> = {
  embedded: () => embeddedBackend,
};

/**
 * Replays a file of store scenarios. Every scenario opens a store of its own, as its setup says, so a URI has no more
 * than a scheme here.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for a store that can't be opened afresh for each scenario.
 */
export async function runContract(file: string, store: string): Promise<ContractReport> {
  const [, scheme] = /^([a-z-]+):$/.exec(store) ?? [];
  const backend = scheme !== undefined && Object.hasOwn(BACKENDS, scheme) ? BACKENDS[scheme] : undefined;
  if (backend === undefined)
    throw new MooncakeKvError(
      "ERR_CONFIG",
      `scenarios can't run against ${describe(store)}: each needs a fresh store; use ${Object.keys(BACKENDS)
        .map((name) => `${name}:`)
        .join(" or ")}`,
      { store },
    );
  return runContractFile(file, backend());
}
