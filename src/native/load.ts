import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { describe, MooncakeKvError } from "../errors.js";
import { type Addon, BINDING_VERSION } from "./addon.js";
import { ADDON_VARIABLE, addonCandidates, packageRoot } from "./locations.js";

interface Attempt {
  readonly path: string;
  readonly reason: string;
}

let loaded: Addon | undefined;

/**
 * The addon, loaded by the first call that succeeds and then kept.
 *
 * @throws MooncakeKvError `ERR_NATIVE` when no file works; it lists every path tried, why it failed, and the remedies.
 */
export function loadNative(): Addon {
  if (loaded) return loaded;
  const root = packageRoot();
  const attempts: Attempt[] = [];
  for (const path of addonCandidates(root, process.env)) {
    const addon = tryLoad(resolve(path), attempts);
    if (addon) {
      loaded = addon;
      return addon;
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

function tryLoad(path: string, attempts: Attempt[]): Addon | undefined {
  try {
    const addon = createRequire(import.meta.url)(path) as Partial<Addon>;
    if (addon.bindingVersion === BINDING_VERSION) return addon as Addon;
    const found =
      addon.bindingVersion === undefined ? "not this package's addon" : describe(addon.bindingVersion);
    attempts.push({ path, reason: `its binding version is ${found}; this package needs ${BINDING_VERSION}` });
  } catch (error) {
    attempts.push({ path, reason: existsSync(path) ? firstLine(error) : "no such file" });
  }
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
  );
  list.push("Built for another machine or by an older release? Delete the build folder and build again.");
  return list;
}
