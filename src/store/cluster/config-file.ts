import { constants } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { describe, MooncakeKvError } from "../../errors.js";
import { jsonKind, parseJsonText } from "./json-text.js";

/** The environment variable that names Mooncake's configuration file. */
export const CONFIG_PATH_VARIABLE = "MOONCAKE_CONFIG_PATH";

/** Bytes of a configuration file at most. A real one has some hundred. */
const LARGEST = 1 << 20;

/** The members of a configuration file, as they stand there. */
export type ConfigMembers = Readonly<Record<string, unknown>>;

/**
 * Reads Mooncake's configuration file: one JSON object of at most 1 MiB. The file may hold passwords: no error quotes it.
 *
 * @throws MooncakeKvError `ERR_CONFIG` with the path for what is no regular file (a device, a pipe, a folder), is too long,
 * can't be read, or is no JSON object.
 */
export async function readConfigFile(path: string): Promise<ConfigMembers> {
  const text = await readBounded(path);
  return inConfigFile(path, () => parseConfigText(text));
}

/** The members of the text of a configuration file. */
export function parseConfigText(text: string): ConfigMembers {
  return configMembers(parseJsonText(text, "the Mooncake config"));
}

/** The members of a parsed configuration file. @throws MooncakeKvError `ERR_CONFIG` for anything but a JSON object. */
export function configMembers(file: unknown): ConfigMembers {
  if (typeof file !== "object" || file === null || Array.isArray(file))
    throw new MooncakeKvError("ERR_CONFIG", `the Mooncake config is ${jsonKind(file)}; it is a JSON object`);
  return file as ConfigMembers;
}

/** Runs `read`; its errors name the file. */
export function inConfigFile<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof MooncakeKvError)) throw error;
    throw new MooncakeKvError("ERR_CONFIG", `${path}: ${error.message}`, { ...error.details, path });
  }
}

async function readBounded(path: string): Promise<string> {
  let file: FileHandle | undefined;
  try {
    // Looked at before it is opened, which has effects on some devices, and afterwards, when nobody can exchange it.
    if (!(await stat(path)).isFile()) throw new Error("it is no regular file");
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile()) throw new Error("it is no regular file");
    const buffer = Buffer.alloc(LARGEST + 1);
    let size = 0;
    for (let read = -1; read !== 0 && size < buffer.length; size += read)
      read = (await file.read(buffer, size, buffer.length - size, null)).bytesRead;
    if (size > LARGEST) throw new Error(`it has more than ${LARGEST} bytes`);
    return buffer.toString("utf8", 0, size);
  } catch (error) {
    throw new MooncakeKvError(
      "ERR_CONFIG",
      `the Mooncake config file ${describe(path, 200)} can't be read: ${(error as Error).message}`,
      { path },
      { cause: error },
    );
  } finally {
    await file?.close();
  }
}
