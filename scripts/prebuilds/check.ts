import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PREBUILT_GLIBC } from "../../src/native/libc.js";
import { readElf } from "./elf.js";

/** The architectures for which the package brings an addon, as Node names them. */
export const ARCHITECTURES = ["x64", "arm64"] as const;

/** The parts of glibc, and the program that loads them: what every such Linux has. */
const LIBRARIES = /^(?:lib(?:c|m|pthread|dl|rt)\.so\.\d+|ld-linux-[\w-]+\.so\.\d+)$/;

/** What Node looks for in an addon. */
const ENTRY = ["napi_register_module_v1", "node_api_module_get_api_version_v1"];

/** The file of an architecture, in the package's folder. */
export function prebuild(root: string, arch: string): string {
  return join(root, "prebuilds", `linux-${arch}`, "mooncake_kv.node");
}

/** What is wrong with an addon that is to go into the package; empty when it is good. */
export function problemsOf(path: string, arch: string, version: string): string[] {
  let file: Buffer;
  try {
    file = readFileSync(path);
  } catch (error) {
    return [`${path} can't be read: ${(error as NodeJS.ErrnoException).code}`];
  }
  const problems: string[] = [];
  try {
    const facts = readElf(file);
    if (facts.arch !== arch) problems.push(`it is for ${facts.arch}, not ${arch}`);
    const foreign = facts.needed.filter((name) => !LIBRARIES.test(name));
    if (foreign.length > 0) problems.push(`it needs ${foreign.join(", ")}`);
    const late = facts.versions.filter((name) => !oldEnough(name));
    if (late.length > 0)
      problems.push(`it needs ${late.join(", ")}; the newest allowed is GLIBC_${PREBUILT_GLIBC}`);
    const missing = ENTRY.filter((name) => !facts.exported.includes(name));
    if (missing.length > 0) problems.push(`it lacks ${missing.join(", ")}`);
    const others = facts.exported.filter((name) => !ENTRY.includes(name));
    if (others.length > 0) problems.push(`it shows ${others.length} other symbols, as ${others[0]}`);
  } catch (error) {
    problems.push((error as Error).message);
  }
  if (!file.includes(`\0${version}\0`)) problems.push(`it was not built for version ${version}`);
  return problems.map((problem) => `${path}: ${problem}`);
}

function oldEnough(name: string): boolean {
  const [major, minor] = /^GLIBC_(\d+)\.(\d+)/.exec(name)?.slice(1).map(Number) ?? [];
  const [most, least] = PREBUILT_GLIBC.split(".").map(Number) as [number, number];
  // A version of another library is never old enough.
  return major !== undefined && (major < most || (major === most && minor! <= least));
}
