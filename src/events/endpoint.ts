import { describe } from "../errors.js";
import { configError } from "./errors.js";

/** The highest port that there is. */
const LAST_PORT = 65_535;

/**
 * The endpoint of a data-parallel rank: the port counted up by the rank, or a suffix for inproc. A port of 0 stays, since
 * the system chooses it. Mirrors vLLM's `offset_endpoint_port`.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for a rank above 0 and an endpoint that is neither tcp nor inproc: two ranks would
 * share one socket; for a rank that leads beyond the last port, and for what is no rank.
 */
export function offsetEndpointPort(endpoint: string, dataParallelRank: number): string {
  checkText("the endpoint", endpoint);
  if (!Number.isSafeInteger(dataParallelRank) || dataParallelRank < 0)
    throw configError(
      `the data-parallel rank is ${describe(dataParallelRank)}; it must be a whole number of 0 or more`,
      { dataParallelRank },
    );
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
  if (Number(port) === 0) return endpoint;
  const own = Number(port) + dataParallelRank;
  if (own > LAST_PORT)
    throw configError(
      `data-parallel rank ${dataParallelRank} of ${describe(endpoint)} would be at port ${own}; ports end at ${LAST_PORT}`,
      { endpoint, dataParallelRank, port: own },
    );
  return `${endpoint.slice(0, colon)}:${own}`;
}

/**
 * Whether a publisher binds an endpoint instead of connecting to it: where a host is a wildcard, and for ipc and inproc.
 * Mirrors vLLM's `_is_bind_endpoint`.
 */
export function isBindEndpoint(endpoint: string): boolean {
  return endpoint.includes("*") || endpoint.includes("::") || /^(?:ipc|inproc):\/\//.test(endpoint);
}

/**
 * Refuses an endpoint that nobody can connect to.
 *
 * @param name of the option, for the message.
 * @throws MooncakeKvError `ERR_CONFIG` that says what would be right.
 */
export function checkConnectEndpoint(name: string, endpoint: unknown): void {
  checkText(name, endpoint);
  const refuse = (why: string): never => {
    throw configError(`${name} is ${describe(endpoint)}: ${why}`, { [name]: endpoint });
  };
  const [, scheme, address] =
    /^([a-z]+):\/\/(.*)$/s.exec(endpoint) ?? refuse("it must be like tcp://host:5557");
  if (scheme === "ipc" || scheme === "inproc") {
    if (address === "") refuse(`a name is missing behind ${scheme}://`);
    return;
  }
  if (scheme !== "tcp") refuse("only tcp, ipc and inproc are known");
  const [, host, port] =
    /^(.*):([^:]*)$/.exec(address!) ?? refuse("a port is missing, as in tcp://host:5557");
  if (host!.includes("*") || host === "0.0.0.0" || host === "[::]" || host === "::")
    refuse(`${host} is where an engine binds; name its host, as in tcp://127.0.0.1:${port}`);
  if (host === "") refuse("a host is missing, as in tcp://127.0.0.1:5557");
  if (!/^\d+$/.test(port!) || Number(port) < 1 || Number(port) > LAST_PORT)
    refuse(`the port must be a number of 1 to ${LAST_PORT}`);
}

function checkText(name: string, endpoint: unknown): asserts endpoint is string {
  if (typeof endpoint !== "string")
    throw configError(`${name} is ${describe(endpoint)}; it must be a text such as tcp://127.0.0.1:5557`, {
      [name]: endpoint,
    });
}
