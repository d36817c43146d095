import { readFileSync } from "node:fs";

/** The oldest glibc that the addons in the package run on. */
export const PREBUILT_GLIBC = "2.28";

/** Why an addon made for glibc can't be loaded into this process; undefined where nothing is known against it. */
export function glibcObstacle(maps: string = mappedFiles()): string | undefined {
  // Loading it by way of a compatibility layer may succeed and then end the process at some call.
  if (!/\/ld-musl-[^/\n]*\.so/.test(maps)) return undefined;
  return `made for glibc ${PREBUILT_GLIBC} or later, but the C library here is musl (as on Alpine): build from source`;
}

/** The files mapped into this process, as Linux lists them; empty elsewhere. */
function mappedFiles(): string {
  try {
    return readFileSync("/proc/self/maps", "utf8");
  } catch {
    return "";
  }
}
