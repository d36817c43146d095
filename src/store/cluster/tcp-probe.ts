import { lookup } from "node:dns/promises";
import { connect, isIPv6, type Socket } from "node:net";
import type { HostPort } from "./host-port.js";

/**
 * Connects and hangs up again.
 *
 * @param preferIpv4 take a name that has addresses of both kinds by its IPv4 address.
 * @returns the address of this machine on the way there: what the other side can reach it by.
 * @throws Error that `whyUnreachable` puts in words, after `timeoutMs` milliseconds at the latest, name lookup included.
 */
export async function connectOnce(
  { host, port }: HostPort,
  timeoutMs: number,
  preferIpv4: boolean = false,
): Promise<string> {
  let timer: NodeJS.Timeout | undefined;
  let socket: Socket | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    const family = preferIpv4 && !isIPv6(host) ? await Promise.race([ipv4IfAny(host), late]) : 0;
    const connected = new Promise<string>((resolve, reject) => {
      socket = connect({ host, port, family });
      socket.once("error", reject);
      socket.once("connect", () => resolve(socket!.localAddress ?? host));
    });
    return await Promise.race([connected, late]);
  } finally {
    clearTimeout(timer);
    socket?.destroy();
  }
}

/**
 * Connects to several at a time; the first that answers counts.
 *
 * @returns as `connectOnce`.
 * @throws AggregateError with an error each, in their order, when none answers in time.
 */
export function connectAny(
  endpoints: readonly HostPort[],
  timeoutMs: number,
  preferIpv4: boolean = false,
): Promise<string> {
  return Promise.any(endpoints.map((endpoint) => connectOnce(endpoint, timeoutMs, preferIpv4)));
}

/** Why nobody answered, in a few words: the system's name of the error where there is one. */
export function whyUnreachable(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code) return code;
  if (error instanceof AggregateError)
    return [...new Set(error.errors.map((one) => whyUnreachable(one)))].join(", ");
  return message;
}

async function ipv4IfAny(host: string): Promise<0 | 4> {
  return lookup(host, { family: 4 }).then(
    () => 4,
    () => 0,
  );
}
