/** A TCP endpoint. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** Longer than any name that DNS has. */
const LONGEST = 300;

/** Parses "host:port", where an IPv6 address stands in brackets; undefined for anything else. */
export function parseEndpoint(text: string): Endpoint | undefined {
  if (text.length > LONGEST) return undefined;
  const match = /^(?:\[([0-9A-Fa-f:.%\w]+)\]|([^\s:[\]/]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host !== undefined && isPort(port) ? { host, port } : undefined;
}

/** Whether a number can be a TCP port. */
export function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535;
}

/** An endpoint as it is written. */
export function formatEndpoint({ host, port }: Endpoint): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
