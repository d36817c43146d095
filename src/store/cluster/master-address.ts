import { MooncakeKvError } from "../../errors.js";
import { parseEtcdEndpoints } from "./etcd-endpoints.js";
import { type HostPort, parseHostPort } from "./host-port.js";
import { withoutPassword } from "./redacted.js";
import { connectAny, connectOnce, whyUnreachable } from "./tcp-probe.js";

/** host:port of a master. */
export type MasterAddress = HostPort;

/** The port of a master that is written without one. */
const DEFAULT_PORT = 50051;

/**
 * Takes an address apart: `host:port`, `host`, `[v6]:port`. Addresses of a high-availability backend
 * (`etcd://...`) name no host and give undefined.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for an empty address or a port that is none: Mooncake's client would crash.
 */
export function parseMasterAddress(address: string): MasterAddress | undefined {
  if (/^[a-z0-9]+:\/\//i.test(address)) return undefined;
  const parsed = parseHostPort(address, DEFAULT_PORT);
  if (parsed) return parsed;
  throw new MooncakeKvError(
    "ERR_CONFIG",
    `the address of the Mooncake master is ${JSON.stringify(withoutPassword(address))}; it is written host:port, as 127.0.0.1:50051`,
    { address: withoutPassword(address) },
  );
}

/**
 * Connects to a master and hangs up again.
 *
 * @returns the address of this machine on the way there: what the cluster can reach it by.
 * @throws MooncakeKvError `ERR_STORE` with the address when nobody answers in time.
 */
export async function probeMaster(address: MasterAddress, timeoutMs: number): Promise<string> {
  const { host, port } = address;
  try {
    // Mooncake speaks IPv4 unless it is told otherwise.
    return await connectOnce(address, timeoutMs, true);
  } catch (error) {
    throw new MooncakeKvError(
      "ERR_STORE",
      `no Mooncake master answers at ${host}:${port} (${whyUnreachable(error)}); start mooncake_master, or correct master_server_address`,
      { component: "master", host, port },
      { cause: error },
    );
  }
}

/** What stands behind `master_server_address`. */
export interface ReachedMaster {
  /** The address of this machine on the way there; undefined where nothing was contacted. */
  readonly localAddress: string | undefined;
  /** `master`, or the `etcd` that knows which of several masters leads; `unknown`: a backend that can't be contacted from here. */
  readonly contacted: "master" | "etcd" | "unknown";
}

/**
 * Contacts whoever stands behind `master_server_address`: the master itself, or for `etcd://host:port;host:port` the etcd
 * that names the leading master.
 *
 * @throws MooncakeKvError `ERR_CONFIG` as `parseMasterAddress`, and for an `etcd://` without endpoints; `ERR_STORE` when
 * nobody answers within `timeoutMs` milliseconds.
 */
export async function reachMaster(masterServerAddress: string, timeoutMs: number): Promise<ReachedMaster> {
  const address = parseMasterAddress(masterServerAddress);
  if (address) return { localAddress: await probeMaster(address, timeoutMs), contacted: "master" };
  if (!masterServerAddress.startsWith("etcd://")) return { localAddress: undefined, contacted: "unknown" };
  const endpoints = parseEtcdEndpoints(masterServerAddress.slice("etcd://".length));
  const shown = withoutPassword(masterServerAddress);
  if (!endpoints)
    throw new MooncakeKvError(
      "ERR_CONFIG",
      `the address of the Mooncake master is ${JSON.stringify(shown)}; one in etcd is written etcd://host:port, with several as etcd://host:port;host:port`,
      { address: shown },
    );
  try {
    return { localAddress: await connectAny(endpoints, timeoutMs, true), contacted: "etcd" };
  } catch (error) {
    throw new MooncakeKvError(
      "ERR_STORE",
      `no etcd answers at ${shown}, which names the leading Mooncake master (${whyUnreachable(error)}); start it, or correct master_server_address`,
      { component: "master", address: shown },
      { cause: error },
    );
  }
}
