import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { packageRoot } from "../package-root.js";
import { type Finding, missing, ok } from "./finding.js";

/** What an optional package is for. */
interface Purpose {
  /** What does not work without it. */
  readonly use: string;
  /** Whether it is tried out, because it has native code or is used as it stands. */
  readonly load?: true | undefined;
  /** Whether compiling the addon needs it. */
  readonly compiles?: true | undefined;
}

/** The optional peers in package.json. */
const PURPOSES: Readonly<Record<string, Purpose>> = {
  "cmake-js": { use: "mooncake-kv build", compiles: true },
  "node-addon-api": { use: "mooncake-kv build", compiles: true },
  zeromq: { use: "lookup --socket, the lookup server and KV events", load: true },
  "prom-client": { use: "the connector's Prometheus metrics", load: true },
  "@huggingface/tokenizers": { use: "lookup --tokenizer", load: true },
  "gpt-tokenizer": { use: "demo" },
  "fast-check": { use: "mooncake-kv/testing" },
};

/**
 * The optional packages: whether they are there, in a version that fits, and whether those that are loaded do load.
 *
 * @param compiling whether the addon has yet to be compiled, so that what that needs is needed.
 * @param folders from which packages are looked for; default: the package itself, then the folder of the process.
 */
export async function packageChecks(
  compiling: boolean,
  folders: readonly string[] = [packageRoot(), process.cwd()],
): Promise<Finding[]> {
  const manifest = JSON.parse(readFileSync(join(packageRoot(), "package.json"), "utf8")) as {
    readonly peerDependencies: Readonly<Record<string, string>>;
  };
  return Promise.all(
    Object.entries(PURPOSES).map(([name, purpose]) =>
      check(name, purpose, manifest.peerDependencies[name] ?? "*", compiling, folders),
    ),
  );
}

async function check(
  name: string,
  { use, load, compiles }: Purpose,
  range: string,
  compiling: boolean,
  folders: readonly string[],
): Promise<Finding> {
  const needed = compiling && compiles === true;
  const subject = name;
  const remedies = [`npm install ${name}`];
  const version = installedVersion(name, folders);
  if (version === undefined) return missing(subject, needed, `not installed; it is for ${use}`, remedies);
  const least = /^>=(\d+\.\d+\.\d+)$/.exec(range)?.[1] ?? "0.0.0";
  if (!atLeast(version, least))
    return missing(subject, needed, `${version}; ${use} needs ${least} or later`, remedies);
  if (!load) return ok(subject, `${version}, for ${use}`);
  try {
    await import(name);
    return ok(subject, `${version}, loads, for ${use}`);
  } catch (error) {
    const reason = (error as Error).message.split("\n", 1)[0]!;
    return missing(subject, needed, `${version} does not load: ${reason}`, [
      `Install it anew: npm install ${name}`,
    ]);
  }
}

/** The version of a package as seen from the first of the folders that has it. */
function installedVersion(name: string, folders: readonly string[]): string | undefined {
  for (const folder of folders)
    for (const place of createRequire(join(folder, "package.json")).resolve.paths(name) ?? [])
      try {
        // Not every package lets its own package.json be required.
        const text = readFileSync(join(place, name, "package.json"), "utf8");
        return (JSON.parse(text) as { readonly version?: string | undefined }).version ?? "0.0.0";
      } catch {
        // Not there.
      }
  return undefined;
}

/** Whether a version is not below another. What follows the three numbers does not count. */
function atLeast(version: string, least: string): boolean {
  const [have, want] = [version, least].map((text) => text.split(/[.+-]/, 3).map(Number));
  for (let i = 0; i < 3; i++) if (have![i] !== want![i]) return have![i]! > want![i]!;
  return true;
}
