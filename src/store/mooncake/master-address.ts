import { lookup } from "node:dns/promises";
import { connect, isIPv6, type Socket } from "node:net";
import { MooncakeKvError } from "../../errors.js";

/** host:port of a master. */
export interface MasterAddress {
  readonly host: string;
  readonly port: number;
}

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
  const match = /^(?:\[([^\]]+)\]|([^:\s]+))(?::(\d{1,5}))?$/.exec(address);
  const port = match?.[3] === undefined ? DEFAULT_PORT : Number(match[3]);
  if (!match || port < 1 || port > 65535)
    throw new MooncakeKvError(
      "ERR_CONFIG",
      `the address of the Mooncake master is ${JSON.stringify(address)}; it is written host:port, as 127.0.0.1:50051`,
      { address },
    );
  return { host: match[1] ?? match[2]!, port };
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
    return await localAddressTo(address, timeoutMs);
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    throw new MooncakeKvError(
      "ERR_STORE",
      `no Mooncake master answers at ${host}:${port} (${code ?? message}); start mooncake_master, or correct master_server_address`,
      { host, port },
      { cause: error },
    );
  }
}

async function localAddressTo({ host, port }: MasterAddress, timeoutMs: number): Promise<string> {
  // Mooncake speaks IPv4 unless it is told otherwise: a name that has both is taken that way.
  const family = isIPv6(host)
    ? 6
    : await lookup(host, { family: 4 }).then(
        () => 4,
        () => 0,
      );
  let socket: Socket | undefined;
  try {
    return await new Promise<string>((resolve, reject) => {
      socket = connect({ host, port, family });
      socket.setTimeout(timeoutMs, () => reject(new Error(`no answer within ${timeoutMs} ms`)));
      socket.once("error", reject);
      socket.once("connect", () => resolve(socket!.localAddress ?? host));
    });
  } finally {
    socket?.destroy();
  }
}
