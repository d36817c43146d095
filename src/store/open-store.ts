import { describe, MooncakeKvError } from "../errors.js";
import { EmbeddedStore } from "./embedded/embedded-store.js";
import { EMBEDDED_OPTIONS, type EmbeddedStoreOptions } from "./embedded/options.js";
import type { KvStore } from "./kv-store.js";

/** What opens a store, as an object. */
export type StoreConfig = { readonly backend: "embedded" } & EmbeddedStoreOptions;

/** A backend as `openStore` knows it. */
interface Backend {
  /** How it is written, for the errors. */
  readonly usage: string;
  readonly options: readonly string[];
  open(options: Record<string, unknown>): Promise<KvStore>;
}

const BACKENDS: Readonly<Record<string, Backend>> = {
  embedded: {
    usage: "embedded:?capacity=1GiB",
    options: EMBEDDED_OPTIONS,
    open: async (options) => new EmbeddedStore(options as EmbeddedStoreOptions),
  },
};

/**
 * Opens a store: `openStore("embedded:?capacity=1GiB")`, or the same as an object,
 * `openStore({ backend: "embedded", capacity: "1GiB" })`.
 *
 * @throws MooncakeKvError `ERR_CONFIG` for an unknown backend or option, `ERR_NATIVE` when the addon is needed and
 * can't be loaded, `ERR_STORE` when the backend can't start.
 */
export async function openStore(target: string | StoreConfig): Promise<KvStore> {
  const { name, options } = typeof target === "string" ? fromUri(target) : fromObject(target);
  const backend = Object.hasOwn(BACKENDS, name) ? BACKENDS[name] : undefined;
  if (!backend)
    throw configError(`there is no store backend ${describe(name)}; known are ${usages()}`, {
      backend: name,
    });
  for (const option of Object.keys(options))
    if (!backend.options.includes(option))
      throw configError(
        `the ${name} store has no option ${describe(option)}; it has ${backend.options.join(", ")}`,
        { backend: name, option },
      );
  return backend.open(options);
}

interface Target {
  readonly name: string;
  readonly options: Record<string, unknown>;
}

function fromUri(uri: string): Target {
  const match = /^([a-z][a-z0-9-]*):([^?]*)(?:\?(.*))?$/is.exec(uri);
  if (!match) throw configError(`${describe(uri)} is no store URI; known are ${usages()}`, { uri });
  const name = match[1]!.toLowerCase();
  if (Object.hasOwn(BACKENDS, name) && match[2] !== "")
    throw configError(
      `${describe(uri)}: unexpected ${describe(match[2])} after "${name}:"; it is written ${BACKENDS[name]!.usage}`,
      { uri },
    );
  const options: Record<string, unknown> = {};
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
