import { existsSync } from "node:fs";
import {
  type ContractBackend,
  type ContractReport,
  embeddedBackend,
  runContractLines,
} from "../../conformance/contract/index.js";
import { describe, MooncakeKvError } from "../../errors.js";
import { loadNative } from "../../native/load.js";

/** A backend under which the contract can be replayed. */
interface Backend {
  /** How it is written, for the errors. */
  readonly usage: string;
  /** Imports what it needs. `location` is what stands behind the colon; undefined: nothing may stand there. */
  readonly load: (environment: NodeJS.ProcessEnv, location: string) => Promise<ContractBackend>;
  readonly takesLocation?: true | undefined;
}

/** By the scheme of the URI. */
const BACKENDS: Readonly<Record<string, Backend>> = {
  embedded: { usage: "embedded:", load: async () => embeddedBackend },
  mooncake: { usage: "mooncake:", load: loadMooncake },
  "mooncake-native": {
    usage: "mooncake-native:/path/libmooncake_store.so",
    load: loadMooncakeNative,
    takesLocation: true,
  },
};

/**
 * Checks the store of `--store`: every scenario opens one of its own, as its setup says, so a URI has no more than a scheme
 * here, and behind `mooncake-native:` the library.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for any other.
 */
export function checkContractStore(store: string): void {
  contractStore(store);
}

/**
 * Replays the lines of a file of store scenarios.
 *
 * @throws MooncakeKvError `ERR_CONFIG` as `checkContractStore`, and where Mooncake's wheel or library is not there;
 * `ERR_NATIVE` where the addon is needed and can't be loaded.
 */
export async function runContract(
  file: string,
  lines: AsyncIterable<string>,
  store: string,
  environment: NodeJS.ProcessEnv,
): Promise<ContractReport> {
  const { backend, location } = contractStore(store);
  return runContractLines(file, lines, await backend.load(environment, location));
}

function contractStore(store: string): { readonly backend: Backend; readonly location: string } {
  const [, scheme = "", location = ""] = /^([a-z-]+):([^?]*)$/.exec(store) ?? [];
  const backend = Object.hasOwn(BACKENDS, scheme) ? BACKENDS[scheme] : undefined;
  if (backend === undefined || (location !== "" && !backend.takesLocation))
    throw new MooncakeKvError(
      "ERR_CONFIG",
      `scenarios can't run against ${describe(store)}: each needs a fresh store; use ${Object.values(BACKENDS)
        .map(({ usage }) => usage)
        .join(" or ")}`,
      { store },
    );
  return { backend, location };
}

async function loadMooncake(environment: NodeJS.ProcessEnv): Promise<ContractBackend> {
  const { locateMooncake } = await import("../../conformance/contract/mooncake/installation.js");
  const { mooncakeBackend } = await import("../../conformance/contract/mooncake/world.js");
  const installation = locateMooncake(environment["MOONCAKE_KV_PYTHON"] || "python3");
  loadNative();
  return mooncakeBackend(installation);
}

async function loadMooncakeNative(
  environment: NodeJS.ProcessEnv,
  location: string,
): Promise<ContractBackend> {
  const { resolveMooncakeNativeOptions } = await import("../../store/mooncake-native/options.js");
  const { nativeBackend } = await import("../../conformance/contract/mooncake-native-world.js");
  const { library } = await resolveMooncakeNativeOptions(
    { library: location === "" ? undefined : location, master: "127.0.0.1:1" },
    environment,
  );
  // A bare name is looked up by the loader.
  if (library.includes("/") && !existsSync(library))
    throw new MooncakeKvError("ERR_CONFIG", `there is no library ${describe(library)}`, { library });
  loadNative();
  return nativeBackend(library);
}
