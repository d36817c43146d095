import { lstat, unlink } from "node:fs/promises";
import { connect } from "node:net";
import { describe } from "../errors.js";
import { configError } from "./errors.js";
import { socketFile } from "./socket-path.js";

/**
 * Makes the way free for a socket that is to be bound: removes the file that an ended process left behind. vLLM removes
 * whatever it finds, so that the second of two engines with one `lookup_rpc_port` cuts off the first one; here a file
 * somebody still answers at is left alone.
 *
 * @throws MooncakeKvError `ERR_CONFIG` when the address is in use, its file is no socket, or the path is too long.
 */
export async function clearSocketFile(address: string): Promise<void> {
  const path = socketFile(address);
  if (path === undefined) return;
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined) return;
  if (!found.isSocket())
    throw configError(`${describe(path, 120)} exists and is no socket; it is left as it is`, { address });
  if (await isAnswered(path))
    throw configError(
      `somebody answers at ${describe(address, 140)} already; engines of one host need different lookup_rpc_port values in kv_connector_extra_config (or different VLLM_RPC_BASE_PATH folders)`,
      { address },
    );
  await removeSocketFile(address);
}

/** Removes the file of a socket that is closed. No file is fine. */
export async function removeSocketFile(address: string): Promise<void> {
  const path = socketFile(address);
  if (path !== undefined) await unlink(path).catch(() => {});
}

/** Whether a process has the socket open: only then a connection comes about. */
async function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const end = (answered: boolean): void => {
      socket.destroy();
      resolve(answered);
    };
    socket.once("connect", () => end(true));
    // Only "nobody listens" proves that; whatever else goes wrong, the file may be somebody's.
    socket.once("error", (error: NodeJS.ErrnoException) =>
      end(error.code !== "ECONNREFUSED" && error.code !== "ENOENT"),
    );
  });
}
