import { describe } from "../errors.js";
import { pythonText } from "../python-text.js";
import { configError } from "./errors.js";
import { checkNames } from "./options.js";

/** What the address of a lookup channel is made of. */
export interface LookupSocketOptions {
  /** The engine's VLLM_RPC_BASE_PATH; its default is the temporary directory of the system. */
  readonly rpcBasePath: string;
  /** Name of the engine's host, as `gethostname` gives it there. */
  readonly hostname: string;
  /** The engine's `parallel_config.data_parallel_index`. */
  readonly dataParallelIndex?: number | undefined;
  /**
   * `lookup_rpc_port` of the connector's extra config. Not a port, but any value that tells engines of one host apart; see
   * `PythonFloat` for what `JSON.parse` loses of it.
   */
  readonly lookupRpcPort?: unknown;
}

/** Bytes of a Unix socket's path at most. */
export const MAX_SOCKET_PATH = 107;

/**
 * The address at which worker rank 0 of an engine answers lookups. Mirrors vLLM's `get_zmq_rpc_path_lookup`; whatever
 * `lookup_rpc_port` is, Python's text of it stands in the path.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for a path, a name or an index that is none, and for a port that is no value of JSON.
 */
export function lookupSocketPath(options: LookupSocketOptions): string {
  checkNames("a lookup socket", options, ["rpcBasePath", "hostname", "dataParallelIndex", "lookupRpcPort"]);
  const { rpcBasePath, hostname, dataParallelIndex = 0, lookupRpcPort = 0 } = options;
  for (const [name, value] of Object.entries({ rpcBasePath, hostname }))
    if (typeof value !== "string") throw configError(`${name} is ${describe(value)}; it is a text`, { name });
  if (!Number.isSafeInteger(dataParallelIndex) || dataParallelIndex < 0)
    throw configError(
      `dataParallelIndex is ${describe(dataParallelIndex)}; it is a whole number of 0 or more`,
      { dataParallelIndex },
    );
  return `ipc://${rpcBasePath}/lookup_rpc_port_${pythonText(lookupRpcPort)}_host_${hostname}_dp_rank${dataParallelIndex}`;
}

/**
 * The file behind an `ipc://` address; undefined for another transport and for Linux's abstract names (`ipc://@name`),
 * which have no file.
 *
 * @throws MooncakeKvError `ERR_CONFIG` when the address is none, or its path is longer than a Unix socket may have.
 */
export function socketFile(address: string): string | undefined {
  if (typeof address !== "string" || !/^(?:ipc|tcp|inproc):\/\/./.test(address))
    throw configError(
      `${describe(address)} is no address of a socket; it is written ipc:///path, tcp://host:port or inproc://name`,
      { address },
    );
  if (!address.startsWith("ipc://")) return undefined;
  const path = address.slice("ipc://".length);
  const length = Buffer.byteLength(path);
  if (length > MAX_SOCKET_PATH)
    throw configError(
      `the socket path ${describe(path, 120)} has ${length} bytes, and a Unix socket has at most ${MAX_SOCKET_PATH}; set VLLM_RPC_BASE_PATH to a shorter folder, on both sides`,
      { address, length, limit: MAX_SOCKET_PATH },
    );
  return path.startsWith("@") ? undefined : path;
}
