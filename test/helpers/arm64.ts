import { existsSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { lacking } from "./prebuilds.js";

/** Where Debian's cross packages put the libraries of arm64. */
const SYSROOT = "/usr/aarch64-linux-gnu";

/** A Node for arm64, as `scripts/arm64-node.sh` fetches it. */
const NODE = resolve("build", "arm64-node", "bin", "node");

/**
 * The command that starts Node for arm64 on this machine, emulated; undefined where that can't be, which a line says.
 *
 * @throws Error in CI, where it must be possible.
 */
export function arm64Node(): readonly string[] | undefined {
  const emulator = onPath("qemu-aarch64") ?? onPath("qemu-aarch64-static");
  if (!emulator) lacking("qemu-aarch64 is not on the PATH (apt-get install qemu-user)");
  else if (!existsSync(SYSROOT)) lacking(`${SYSROOT} is not there (apt-get install libstdc++6-arm64-cross)`);
  else if (!existsSync(NODE)) lacking(`${NODE} is not there (scripts/arm64-node.sh fetches it)`);
  else return [emulator, "-L", SYSROOT, NODE];
  return undefined;
}

/** The file of a program on the PATH. */
function onPath(program: string): string | undefined {
  const files = (process.env["PATH"] ?? "").split(delimiter).map((folder) => join(folder, program));
  return files.find((file) => existsSync(file));
}
