import { describe, MooncakeKvError } from "../errors.js";
import type { AdminExtras } from "./admin/admin-backend.js";
import type { AdminStoreOptions } from "./admin/options.js";
import type { StoreBackend } from "./backend.js";
import { CheckedStore } from "./checked-store.js";
import type { EmbeddedExtras } from "./embedded/embedded-backend.js";
import type { EmbeddedStoreOptions } from "./embedded/options.js";
import type { KvStore } from "./kv-store.js";
import type { MooncakeExtras } from "./mooncake/mooncake-backend.js";
import type { MooncakeStoreOptions } from "./mooncake/options.js";
import type { MooncakeNativeExtras } from "./mooncake-native/mooncake-native-backend.js";
import type { MooncakeNativeStoreOptions } from "./mooncake-native/options.js";
import type { CallOptions } from "./shared/call-options.js";
import type { StoreUsage } from "./shared/usage.js";

/** A store that can tell what it holds. */
export type MeasuredStore = Omit<KvStore, "usage"> & {
  /** What the store holds and how it is used. Grants no lease. */
  usage(options?: CallOptions): Promise<StoreUsage>;
};

/** What `openStore("embedded:...")` gives. */
export type EmbeddedStore = MeasuredStore & EmbeddedExtras;
/** What `openStore("mooncake:...")` gives. */
export type MooncakeStore = KvStore & MooncakeExtras;
/** What `openStore("mooncake-native:...")` gives. */
export type MooncakeNativeStore = KvStore & MooncakeNativeExtras;
/** What `openStore("mooncake-admin:...")` gives. */
export type AdminStore = MeasuredStore & AdminExtras;

/** What opens an embedded store, as an object. */
export type EmbeddedStoreConfig = { readonly backend: "embedded" } & EmbeddedStoreOptions;
/** What opens a store over Mooncake's Python client, as an object. */
export type MooncakeStoreConfig = { readonly backend: "mooncake" } & MooncakeStoreOptions;
/** What opens a store over Mooncake's C library, as an object. */
export type MooncakeNativeStoreConfig = { readonly backend: "mooncake-native" } & MooncakeNativeStoreOptions;
/** What opens an admin store, as an object. */
export type AdminStoreConfig = { readonly backend: "mooncake-admin" } & AdminStoreOptions;

/** What opens a store, as an object. */
export type StoreConfig =
  | EmbeddedStoreConfig
  | MooncakeStoreConfig
  | MooncakeNativeStoreConfig
  | AdminStoreConfig;

/** A backend as `openStore` knows it. */
interface Backend {
  /** How it is written, for the errors. */
  readonly usage: string;
  /** The option that a URI writes behind the colon. */
  readonly location?: string | undefined;
  /** Imports the backend: opening one loads nothing of the others. */
  load(): Promise<LoadedBackend>;
}

interface LoadedBackend {
  readonly options: readonly string[];
  /** Checks the values of options. */
  check(options: Record<string, unknown>): unknown;
  open(options: Record<string, unknown>): Promise<StoreBackend>;
}

const BACKENDS: Readonly<Record<string, Backend>> = {
  embedded: {
    usage: "embedded:?capacity=1GiB",
    async load() {
      const { EMBEDDED_OPTIONS, resolveEmbeddedOptions } = await import("./embedded/options.js");
      const { EmbeddedBackend } = await import("./embedded/embedded-backend.js");
      return {
        options: EMBEDDED_OPTIONS,
        check: resolveEmbeddedOptions,
        open: async (options) => new EmbeddedBackend(options),
      };
    },
  },
  mooncake: {
    usage: "mooncake:./mooncake.json",
    location: "config",
    async load() {
      const { MOONCAKE_OPTIONS, resolveMooncakeOptions } = await import("./mooncake/options.js");
      const { MooncakeBackend } = await import("./mooncake/mooncake-backend.js");
      return {
        options: [...MOONCAKE_OPTIONS, "environment"],
        check: resolveMooncakeOptions,
        open: (options) => MooncakeBackend.open(options),
      };
    },
  },
  "mooncake-native": {
    usage: "mooncake-native:/path/libmooncake_store.so?config=mooncake.json",
    location: "library",
    async load() {
      const { MOONCAKE_NATIVE_OPTIONS, resolveMooncakeNativeOptions } = await import(
        "./mooncake-native/options.js"
      );
      const { MooncakeNativeBackend } = await import("./mooncake-native/mooncake-native-backend.js");
      return {
        options: MOONCAKE_NATIVE_OPTIONS,
        check: resolveMooncakeNativeOptions,
        open: (options) => MooncakeNativeBackend.open(options),
      };
    },
  },
  "mooncake-admin": {
    usage: "mooncake-admin:http://host:9003",
    location: "url",
    async load() {
      const { ADMIN_OPTIONS, resolveAdminOptions } = await import("./admin/options.js");
      const { AdminBackend } = await import("./admin/admin-backend.js");
      return {
        options: ADMIN_OPTIONS,
        check: resolveAdminOptions,
        open: async (options) => new AdminBackend(options as unknown as AdminStoreOptions),
      };
    },
  },
};

/**
 * Opens a store: `openStore("embedded:?capacity=1GiB")`, or the same as an object,
 * `openStore({ backend: "embedded", capacity: "1GiB" })`. A backend's own members are there, too: `log()` of a
 * `mooncake:` store, `list()` of a `mooncake-admin:` one.
 *
 * A store URI is code: it names programs, libraries and hosts that this process runs, loads and speaks to. Take it from
 * whoever may do that, not from a stranger.
 *
 * @example
 * ```ts
 * import { openStore } from "mooncake-kv/store";
 *
 * await using store = await openStore("embedded:?capacity=64MiB");
 * (await store.put(["a"], [Uint8Array.of(1, 2, 3)])).throwIfFailed();
 * const { values } = await store.get(["a", "b"]);
 * console.log(values[0]?.length, values[1]); // 3 undefined
 * ```
 *
 * @throws MooncakeKvError `ERR_CONFIG` for an unknown backend or option, `ERR_NATIVE` when the addon is needed and
 * can't be loaded, `ERR_STORE` when the backend can't start.
 */
export async function openStore(target: `embedded:${string}` | EmbeddedStoreConfig): Promise<EmbeddedStore>;
export async function openStore(target: `mooncake:${string}` | MooncakeStoreConfig): Promise<MooncakeStore>;
export async function openStore(
  target: `mooncake-native:${string}` | MooncakeNativeStoreConfig,
): Promise<MooncakeNativeStore>;
export async function openStore(target: `mooncake-admin:${string}` | AdminStoreConfig): Promise<AdminStore>;
export async function openStore(target: string | StoreConfig): Promise<KvStore>;
export async function openStore(target: string | StoreConfig): Promise<KvStore> {
  const { name, options } = typeof target === "string" ? fromUri(target) : fromObject(target);
  const { open } = await loadedBackend(name, options);
  return CheckedStore.over(await open(Object.fromEntries(options)));
}

/**
 * Checks a store URI and opens nothing: neither a connection nor the addon is needed. What it reads is the configuration
 * file that the URI names.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for whatever `openStore` refuses before it starts.
 */
export async function checkStoreUri(uri: string): Promise<void> {
  const { name, options } = fromUri(uri);
  const { check } = await loadedBackend(name, options);
  await check(Object.fromEntries(options));
}

interface Target {
  readonly name: string;
  /** A map, because names are other people's: "__proto__" is one like any other. */
  readonly options: ReadonlyMap<string, unknown>;
}

/** The backend of that name, if it has these options. */
async function loadedBackend(name: string, options: Target["options"]): Promise<LoadedBackend> {
  const backend = await backendOf(name).load();
  for (const option of options.keys())
    if (!backend.options.includes(option))
      throw configError(
        `the ${name} store has no option ${describe(option)}; it has ${backend.options.join(", ")}`,
        { backend: name, option },
      );
  return backend;
}

function backendOf(name: string): Backend {
  const backend = Object.hasOwn(BACKENDS, name) ? BACKENDS[name] : undefined;
  if (backend) return backend;
  throw configError(`there is no store backend ${describe(name)}; known are ${usages()}`, { backend: name });
}

function fromUri(uri: string): Target {
  const match = /^([a-z][a-z0-9-]*):([^?]*)(?:\?(.*))?$/is.exec(uri);
  if (!match) throw configError(`${describe(uri)} is no store URI; known are ${usages()}`, { uri });
  const name = match[1]!.toLowerCase();
  const { location, usage } = backendOf(name);
  const options = new Map<string, unknown>();
  if (match[2] !== "" && location !== undefined) options.set(location, match[2]);
  else if (match[2] !== "")
    throw configError(
      `${describe(uri)}: unexpected ${describe(match[2])} after "${name}:"; it is written ${usage}`,
      { uri },
    );
  for (const [option, value] of new URLSearchParams(match[3] ?? "")) {
    if (options.has(option))
      throw configError(`${describe(uri)}: the option ${describe(option)} occurs twice`, { uri, option });
    options.set(option, value);
  }
  return { name, options };
}

function fromObject(config: StoreConfig): Target {
  if (typeof config !== "object" || config === null || Array.isArray(config))
    throw configError(
      `${describe(config)} is neither a store URI nor a store configuration; known are ${usages()}`,
    );
  const { backend, ...options } = config as { backend: unknown } & Record<string, unknown>;
  if (typeof backend !== "string")
    throw configError(`backend is ${describe(backend)}; it is one of ${Object.keys(BACKENDS).join(", ")}`);
  return {
    name: backend,
    options: new Map(Object.entries(options).filter(([, value]) => value !== undefined)),
  };
}

function usages(): string {
  return Object.values(BACKENDS)
    .map((backend) => backend.usage)
    .join(", ");
}

function configError(message: string, details: Record<string, unknown> = {}): MooncakeKvError {
  return new MooncakeKvError("ERR_CONFIG", message, details);
}
