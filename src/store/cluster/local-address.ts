import { createSocket } from "node:dgram";
import { isIPv6 } from "node:net";
import { MooncakeKvError } from "../../errors.js";
import { parseMasterAddress } from "./master-address.js";

/**
 * The address of this machine on the way to the master: what the cluster can reach it by. Nothing is sent.
 *
 * @throws MooncakeKvError `ERR_STORE` when there is no way, or the name of the master has no address.
 */
export async function addressTowards(master: string, deadlineMs: number): Promise<string> {
  const { host, port } = parseMasterAddress(master)!;
  let failure: unknown;
  for (const type of isIPv6(host) ? (["udp6"] as const) : (["udp4", "udp6"] as const)) {
    try {
      return await towards(type, host, port, deadlineMs);
    } catch (error) {
      failure = error;
    }
  }
  throw new MooncakeKvError(
    "ERR_STORE",
    `no way leads from this machine to the Mooncake master ${master} (${failure instanceof Error ? failure.message : String(failure)}); correct the address, or say localHostname`,
    { master },
    { cause: failure },
  );
}

async function towards(
  type: "udp4" | "udp6",
  host: string,
  port: number,
  deadlineMs: number,
): Promise<string> {
  const socket = createSocket(type);
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${deadlineMs} ms`)), deadlineMs);
      socket.once("error", reject);
      socket.connect(port, host, () => resolve());
    });
    return socket.address().address;
  } finally {
    clearTimeout(timer);
    socket.close();
  }
}
