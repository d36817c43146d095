import { describe, MooncakeKvError } from "../errors.js";
import type { AdminStore } from "./admin/admin-store.js";
import type { AdminStoreOptions } from "./admin/options.js";
import type { EmbeddedStoreOptions } from "./embedded/options.js";
import type { KvStore } from "./kv-store.js";
import type { MooncakeStoreOptions } from "./mooncake/options.js";
import type { MooncakeNativeStoreOptions } from "./mooncake-native/options.js";

/** What opens an admin store, as an object. */
export type AdminStoreConfig = { readonly backend: "mooncake-admin" } & AdminStoreOptions;

/** What opens a store, as an object. */
export type StoreConfig =
  | ({ readonly backend: "embedded" } & EmbeddedStoreOptions)
  | ({ readonly backend: "mooncake" } & MooncakeStoreOptions)
  | ({ readonly backend: "mooncake-native" } & MooncakeNativeStoreOptions)
  | AdminStoreConfig;

/** A backend as `openStore` knows it. */
interface Backend {
  /** How it is written, for the errors. */
  readonly usage: string;
  /** The option that a URI writes behind the colon. */
  readonly location?: string;
  /** Imports the backend: opening one loads nothing of the others. */
  load(): Promise<LoadedBackend>;
}

interface LoadedBackend {
  readonly options: readonly string[];
  open(options: Record<string, unknown>): Promise<KvStore>;
}

const BACKENDS: Readonly<Record<string, Backend>> = {
  embedded: {
    usage: "embedded:?capacity=1GiB",
    async load() {
      const { EMBEDDED_OPTIONS } = await import("./embedded/options.js");
      const { EmbeddedStore } = await import("./embedded/embedded-store.js");
      const open = async (options: EmbeddedStoreOptions): Promise<KvStore> => new EmbeddedStore(options);
      return { options: EMBEDDED_OPTIONS, open };
    },
  },
  mooncake: {
    usage: "mooncake:./mooncake.json",
    location: "config",
    async load() {
      const { MOONCAKE_OPTIONS } = await import("./mooncake/options.js");
      const { MooncakeStore } = await import("./mooncake/mooncake-store.js");
      return {
        options: [...MOONCAKE_OPTIONS, "environment"],
        open: (options) => MooncakeStore.open(options),
      };
    },
  },
  "mooncake-native": {
    usage: "mooncake-native:/path/libmooncake_store.so?config=mooncake.json",
    location: "library",
    async load() {
      const { MOONCAKE_NATIVE_OPTIONS } = await import("./mooncake-native/options.js");
      const { MooncakeNativeStore } = await import("./mooncake-native/mooncake-native-store.js");
      return { options: MOONCAKE_NATIVE_OPTIONS, open: (options) => MooncakeNativeStore.open(options) };
    },
  },
  "mooncake-admin": {
    usage: "mooncake-admin:http://host:9003",
    location: "url",
    async load() {
      const { ADMIN_OPTIONS } = await import("./admin/options.js");
      const { AdminStore } = await import("./admin/admin-store.js");
      const open = async (options: Record<string, unknown>): Promise<KvStore> =>
        new AdminStore(options as unknown as AdminStoreOptions);
      return { options: ADMIN_OPTIONS, open };
    },
  },
};

/** An admin store can do more than `KvStore`: it lists keys and segments. */
export async function openStore(target: `mooncake-admin:${string}` | AdminStoreConfig): Promise<AdminStore>;
/**
 * Opens a store: `openStore("embedded:?capacity=1GiB")`, or the same as an object,
 * `openStore({ backend: "embedded", capacity: "1GiB" })`.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for an unknown backend or option, `ERR_NATIVE` when the addon is needed and
 * can't be loaded, `ERR_STORE` when the backend can't start.
 */
export async function openStore(target: string | StoreConfig): Promise<KvStore>;
export async function openStore(target: string | StoreConfig): Promise<KvStore> {
  const { name, options } = typeof target === "string" ? fromUri(target) : fromObject(target);
  const backend = Object.hasOwn(BACKENDS, name) ? BACKENDS[name] : undefined;
  if (!backend)
    throw configError(`there is no store backend ${describe(name)}; known are ${usages()}`, {
      backend: name,
    });
  const { options: known, open } = await backend.load();
  for (const option of Object.keys(options))
    if (!known.includes(option))
      throw configError(`the ${name} store has no option ${describe(option)}; it has ${known.join(", ")}`, {
        backend: name,
        option,
      });
  return open(options);
}

interface Target {
  readonly name: string;
  readonly options: Record<string, unknown>;
}

function fromUri(uri: string): Target {
  const match = /^([a-z][a-z0-9-]*):([^?]*)(?:\?(.*))?$/is.exec(uri);
  if (!match) throw configError(`${describe(uri)} is no store URI; known are ${usages()}`, { uri });
  const name = match[1]!.toLowerCase();
  const backend = Object.hasOwn(BACKENDS, name) ? BACKENDS[name] : undefined;
  const options: Record<string, unknown> = {};
  if (match[2] !== "" && backend?.location !== undefined) options[backend.location] = match[2];
  else if (match[2] !== "" && backend)
    throw configError(
      `${describe(uri)}: unexpected ${describe(match[2])} after "${name}:"; it is written ${backend.usage}`,
      { uri },
    );
  for (const [option, value] of new URLSearchParams(match[3] ?? "")) {
    if (Object.hasOwn(options, option))
      throw configError(`${describe(uri)}: the option ${describe(option)} occurs twice`, { uri, option });
    options[option] = value;
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
  return { name: backend, options };
}

function usages(): string {
  return Object.values(BACKENDS)
    .map((backend) => backend.usage)
    .join(", ");
}

function configError(message: string, details: Record<string, unknown> = {}): MooncakeKvError {
  return new MooncakeKvError("ERR_CONFIG", message, details);
}
