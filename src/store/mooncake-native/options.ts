import {
  type ClusterAddresses,
  checkClusterAddresses,
  JOIN_OPTIONS,
  type JoinOptions,
  type ResolvedJoinOptions,
  resolveJoinOptions,
  sizeOption,
} from "../cluster/join-options.js";
import { P2P_HANDSHAKE } from "../cluster/metadata-server.js";
import { withoutPassword } from "../cluster/redacted.js";
import { optionError, wholeOption } from "../shared/option-values.js";

/** The environment variable that names Mooncake's C library. */
export const LIBRARY_VARIABLE = "MOONCAKE_STORE_LIBRARY";

/** Options of the native Mooncake store. Numbers may be text, as in a URI; sizes are as `"64MiB"`. */
export interface MooncakeNativeStoreOptions extends JoinOptions {
  /** Mooncake's C library, `libmooncake_store.so`. Default: the one that `MOONCAKE_STORE_LIBRARY` names. */
  readonly library?: string | undefined;
  /** Calls that are inside the library at a time. Default: 4. */
  readonly threads?: number | string | undefined;
  /** Bytes of the memory, one piece a thread, in which values lie contiguous for the library. Default: 16 MiB. */
  readonly staging?: number | bigint | string | undefined;
}

/** The names of the options, as a URI writes them. */
export const MOONCAKE_NATIVE_OPTIONS: readonly (keyof MooncakeNativeStoreOptions)[] = [
  "library",
  ...JOIN_OPTIONS,
  "threads",
  "staging",
];

/** Options with every default filled in. */
export interface ResolvedMooncakeNativeOptions extends ResolvedJoinOptions {
  readonly library: string;
  readonly threads: number;
  readonly staging: bigint;
}

/**
 * Checks options, whose values may still be the text of a URI, and fills in what configuration file and environment say,
 * as for the sidecar. What would make the library end this process is refused.
 *
 * @throws MooncakeKvError `ERR_CONFIG` that names the option and what it may be, or the file and what is wrong with it.
 */
export async function resolveMooncakeNativeOptions(
  options: Readonly<Partial<Record<keyof MooncakeNativeStoreOptions, unknown>>>,
  environment: NodeJS.ProcessEnv = process.env,
): Promise<ResolvedMooncakeNativeOptions> {
  const library = options.library ?? (environment[LIBRARY_VARIABLE] || undefined);
  if (typeof library !== "string" || library === "" || library.includes("\0"))
    throw optionError(
      "library",
      library,
      `the path of Mooncake's C library, as in mooncake-native:/opt/mooncake/libmooncake_store.so, or in ${LIBRARY_VARIABLE}`,
    );
  const joined = await resolveJoinOptions(options, environment, checkLibraryAddresses);
  const { protocol, tenantId } = joined;
  if (protocol !== "tcp" && protocol !== "rdma") throw optionError("protocol", protocol, "tcp or rdma");
  if (tenantId !== "default")
    throw optionError("tenantId", tenantId, '"default": the C library knows no other tenant');
  return {
    ...joined,
    library,
    threads: wholeOption("threads", options.threads ?? 4, { most: 64 }),
    staging: sizeOption("staging", options.staging ?? 16 << 20),
  };
}

/** The C library may be built without etcd and high availability; it ends this process for what it lacks. */
function checkLibraryAddresses(addresses: ClusterAddresses): void {
  const { masterServerAddress, metadataServer } = addresses;
  if (masterServerAddress.includes("://"))
    throw optionError(
      "master",
      withoutPassword(masterServerAddress),
      "host:port; a library without that backend would end this process, the mooncake: store can take it",
    );
  if (metadataServer !== P2P_HANDSHAKE && !metadataServer.startsWith("http://"))
    throw optionError(
      "metadataServer",
      withoutPassword(metadataServer),
      "P2PHANDSHAKE or an address that starts with http://; for anything else the library would end this process, the mooncake: store can take etcd",
    );
  checkClusterAddresses(addresses);
}
