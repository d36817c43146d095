import { describe } from "../errors.js";
import { configError } from "./errors.js";

/** The highest port that there is. */
const LAST_PORT = 65_535;

/** Bytes of the path of a socket that systems take. */
const LONGEST_PATH = 107;

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
  const place = placeOf(name, endpoint);
  if (place === undefined) return;
  const { host, port } = place;
  if (host.includes("*") || host === "0.0.0.0" || host === "[::]" || host === "::")
    refuse(
      name,
      endpoint,
      `${host} is where an engine binds; name its host, as in tcp://127.0.0.1:${isPort(port) ? port : "5557"}`,
    );
  if (!isPort(port)) refuse(name, endpoint, `the port must be a number of 1 to ${LAST_PORT}`);
}

/**
 * Refuses an endpoint at which nobody can publish. A port of 0 or `*` lets the system choose one.
 *
 * @param name of the option, for the message.
 * @throws MooncakeKvError `ERR_CONFIG` that says what would be right.
 */
export function checkPublishEndpoint(name: string, endpoint: unknown): void {
  checkText(name, endpoint);
  const port = placeOf(name, endpoint)?.port ?? "0";
  if (!isPort(port) && port !== "0" && port !== "*")
    refuse(name, endpoint, `the port must be a number of 1 to ${LAST_PORT}, or 0 for any that is free`);
}

/** Host and port of a tcp endpoint; undefined for a name of ipc or inproc. */
function placeOf(name: string, endpoint: string): { host: string; port: string } | undefined {
  const [, scheme, address] =
    /^([a-z]+):\/\/(.*)$/s.exec(endpoint) ?? refuse(name, endpoint, "it must be like tcp://host:5557");
  if (scheme === "ipc" || scheme === "inproc") {
    if (address === "") refuse(name, endpoint, `a name is missing behind ${scheme}://`);
    const bytes = new TextEncoder().encode(address).length;
    if (scheme === "ipc" && bytes > LONGEST_PATH)
      refuse(name, endpoint, `its path has ${bytes} bytes; sockets take up to ${LONGEST_PATH}`);
    return undefined;
  }
  if (scheme !== "tcp") refuse(name, endpoint, "only tcp, ipc and inproc are known");
  const [, host, port] =
    /^(.*):([^:]*)$/s.exec(address!) ?? refuse(name, endpoint, "a port is missing, as in tcp://host:5557");
  if (host === "") refuse(name, endpoint, "a host is missing, as in tcp://127.0.0.1:5557");
  if (/[\s/@?#]/.test(host!))
    refuse(name, endpoint, "it must be like tcp://host:5557, without anything else");
  return { host: host!, port: port! };
}

function isPort(port: string): boolean {
  return /^\d{1,5}$/.test(port) && Number(port) >= 1 && Number(port) <= LAST_PORT;
}

function refuse(name: string, endpoint: string, why: string): never {
  throw configError(`${name} is ${describe(endpoint)}: ${why}`, { [name]: endpoint });
}

function checkText(name: string, endpoint: unknown): asserts endpoint is string {
  if (typeof endpoint !== "string")
    throw configError(`${name} is ${describe(endpoint)}; it must be a text such as tcp://127.0.0.1:5557`, {
      [name]: endpoint,
    });
}
