import { describe } from "../errors.js";
import { configError } from "./errors.js";

/**
 * The endpoint of a data-parallel rank: the port counted up by the rank, or a suffix for inproc. A port of 0 stays, since
 * the system chooses it. Mirrors vLLM's `offset_endpoint_port`.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for a rank above 0 and an endpoint that is neither tcp nor inproc: two ranks would
 * share one socket.
 */
export function offsetEndpointPort(endpoint: string, dataParallelRank: number): string {
  if (endpoint === "" || dataParallelRank === 0) return endpoint;
  if (endpoint.includes("inproc")) return `${endpoint}_dp${dataParallelRank}`;
  if (!endpoint.includes("tcp"))
    throw configError(
      `${describe(endpoint)} has no place for data-parallel rank ${dataParallelRank}; use a tcp or inproc endpoint`,
      { endpoint, dataParallelRank },
    );
  const colon = endpoint.lastIndexOf(":");
  if (colon < 0) return endpoint;
  const port = endpoint.slice(colon + 1);
  if (!/^\d+$/.test(port))
    throw configError(`${describe(endpoint)} has no port at its end`, { endpoint, dataParallelRank });
  return Number(port) === 0 ? endpoint : `${endpoint.slice(0, colon)}:${Number(port) + dataParallelRank}`;
}

/** Whether a publisher binds an endpoint instead of connecting to it. Mirrors vLLM's `_is_bind_endpoint`. */
export function isBindEndpoint(endpoint: string): boolean {
  return endpoint.includes("*") || endpoint.includes("::") || /^(?:ipc|inproc):\/\//.test(endpoint);
}
