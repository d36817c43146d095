import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { constants } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { describe, MooncakeKvError } from "../errors.js";
import { type Addon, BINDING_VERSION } from "./addon.js";
import { glibcObstacle, PREBUILT_GLIBC } from "./libc.js";
import {
  ADDON_VARIABLE,
  addonCandidates,
  packageRoot,
  prebuiltAddon,
  versionOfPackage,
} from "./locations.js";

/** A file that was tried, and why it is not the addon. */
export interface Attempt {
  readonly path: string;
  readonly reason: string;
}

/** The addon with where it came from. */
export interface LoadedAddon {
  readonly addon: Addon;
  readonly path: string;
  /** The files that stand before it in the order and were not taken. */
  readonly passedOver: readonly Attempt[];
}

let loaded: LoadedAddon | undefined;

/** Files that were opened and not taken: the system keeps them open, so that a new one in their place needs another name. */
const refused: Map<string, number> = new Map();

/**
 * The addon, loaded by the first call that succeeds and then kept.
 *
 * @throws MooncakeKvError `ERR_NATIVE` when no file works; it lists every path tried, why it failed, and the remedies.
 */
export function loadNative(): Addon {
  return findNative().addon;
}

/**
 * The addon as `loadNative` gives it, and its file.
 *
 * @throws MooncakeKvError as `loadNative`.
 */
export function findNative(): LoadedAddon {
  if (loaded) return loaded;
  const root = packageRoot();
  const attempts: Attempt[] = [];
  for (const candidate of addonCandidates(root, process.env)) {
    const path = resolve(candidate);
    const obstacle = path === prebuiltAddon(root) && existsSync(path) ? glibcObstacle() : undefined;
    if (obstacle !== undefined) attempts.push({ path, reason: obstacle });
    else {
      const addon = tryLoad(path, root, attempts);
      if (addon) {
        loaded = { addon, path, passedOver: attempts };
        return loaded;
      }
    }
  }
  throw loadError(root, attempts);
}

/** Whether `loadNative` works here. */
export function nativeAvailable(): boolean {
  try {
    loadNative();
    return true;
  } catch {
    return false;
  }
}

function tryLoad(path: string, root: string, attempts: Attempt[]): Addon | undefined {
  try {
    const addon = open(path);
    const reason = mismatch(addon, versionOfPackage(root));
    if (reason === undefined) return addon as Addon;
    refused.set(path, (refused.get(path) ?? 0) + 1);
    attempts.push({ path, reason });
  } catch (error) {
    attempts.push({ path, reason: existsSync(path) ? firstLine(error) : "no such file" });
  }
  return undefined;
}

function open(path: string): Partial<Addon> {
  const times = refused.get(path) ?? 0;
  if (times === 0 || !path.endsWith(".node")) return createRequire(import.meta.url)(path) as Partial<Addon>;
  const module = { exports: {} };
  process.dlopen(
    module,
    `${dirname(path)}${"/.".repeat(times)}/${basename(path)}`,
    constants.dlopen.RTLD_LAZY,
  );
  return module.exports;
}

/** Why an addon is not the one that this package needs. */
function mismatch(addon: Partial<Addon>, version: string | undefined): string | undefined {
  if (addon.bindingVersion === undefined) return "it is not this package's addon";
  if (addon.bindingVersion !== BINDING_VERSION)
    return `its binding version is ${describe(addon.bindingVersion)}; this package needs ${BINDING_VERSION}`;
  // The sources of the same interface differ from release to release.
  if (addon.packageVersion !== version)
    return `built for mooncake-kv ${addon.packageVersion ?? "of an unknown version"}; this is ${version}: build again`;
  return undefined;
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : describe(error)).split("\n", 1)[0]!;
}

function loadError(root: string, attempts: readonly Attempt[]): MooncakeKvError {
  const lines = [
    `the native addon of mooncake-kv can't be loaded (${process.platform}-${process.arch}, Node ${process.versions.node}). Tried:`,
    ...attempts.map(({ path, reason }) => `  - ${path}: ${reason}`),
    "Remedies:",
    ...remedies(root).map((remedy, index) => `  ${index + 1}. ${remedy}`),
  ];
  return new MooncakeKvError("ERR_NATIVE", lines.join("\n"), {
    platform: process.platform,
    arch: process.arch,
    attempts,
  });
}

function remedies(root: string): string[] {
  const list: string[] = [];
  if (process.env[ADDON_VARIABLE])
    list.push(`${ADDON_VARIABLE} is set: let it name a built mooncake_kv.node, or unset it.`);
  if (process.platform !== "linux" || !["x64", "arm64"].includes(process.arch))
    list.push(
      "The native parts are made for Linux on x64 and arm64. Everything that is pure works without them.",
    );
  // Only a checkout has the sources of the tests.
  list.push(
    existsSync(join(root, "tsconfig.json"))
      ? "In this checkout: npm run build:native (needs Node, a C++20 compiler and CMake)."
      : "In this installation: npm install cmake-js node-addon-api, then npx mooncake-kv build (needs Node, a C++20 compiler and CMake).",
    `The package brings the addon for Linux with glibc ${PREBUILT_GLIBC} or later on x64 and arm64; install it again if the file is missing there.`,
    "Built for another machine or by an older release? Delete the build folder and build again.",
  );
  return list;
}
