import { describe } from "../errors.js";
import { configError } from "./errors.js";

/** What the address of a lookup channel is made of. */
export interface LookupSocketOptions {
  /** The engine's VLLM_RPC_BASE_PATH; its default is the temporary directory of the system. */
  readonly rpcBasePath: string;
  /** Name of the engine's host, as `gethostname` gives it there. */
  readonly hostname: string;
  /** The engine's `parallel_config.data_parallel_index`. */
  readonly dataParallelIndex?: number | undefined;
  /** `lookup_rpc_port` of the connector's extra config. Not a port, but any text that tells engines of one host apart. */
  readonly lookupRpcPort?: unknown;
}

/** Bytes of a Unix socket's path at most. */
export const MAX_SOCKET_PATH = 107;

/**
 * The address at which worker rank 0 of an engine answers lookups. Mirrors vLLM's `get_zmq_rpc_path_lookup`; whatever
 * `lookup_rpc_port` is, Python's text of it stands in the path.
 */
export function lookupSocketPath(options: LookupSocketOptions): string {
  const port = "lookupRpcPort" in options && options.lookupRpcPort !== undefined ? options.lookupRpcPort : 0;
  return `ipc://${options.rpcBasePath}/lookup_rpc_port_${pythonText(port)}_host_${options.hostname}_dp_rank${options.dataParallelIndex ?? 0}`;
}

/** Python's `str` of a JSON value. */
function pythonText(value: unknown): string {
  return typeof value === "string" ? value : pythonRepr(value);
}

function pythonRepr(value: unknown): string {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "string") {
    const quote = value.includes("'") && !value.includes('"') ? '"' : "'";
    return quote + value.replaceAll("\\", "\\\\").replaceAll(quote, `\\${quote}`) + quote;
  }
  if (Array.isArray(value)) return `[${value.map(pythonRepr).join(", ")}]`;
  if (typeof value === "object")
    return `{${Object.entries(value)
      .map(([name, item]) => `${pythonRepr(name)}: ${pythonRepr(item)}`)
      .join(", ")}}`;
  return String(value);
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
