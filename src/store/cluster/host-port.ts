/** Where somebody listens for TCP connections. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/**
 * Takes `host:port` or `[v6]:port` apart; undefined for anything else.
 *
 * @param otherwise the port of an address that is written without one; undefined: it must be written.
 */
export function parseHostPort(text: string, otherwise?: number): HostPort | undefined {
  const match = /^(?:\[([^\]\s]+)\]|([^:\s]+))(?::(\d{1,5}))?$/.exec(text);
  const port = match?.[3] === undefined ? otherwise : Number(match[3]);
  if (!match || port === undefined || port < 1 || port > 65535) return undefined;
  return { host: match[1] ?? match[2]!, port };
}
