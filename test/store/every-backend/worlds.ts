import { MooncakeCluster } from "../../../src/conformance/contract/mooncake/cluster.js";
import { CheckedStore, type KvStore, openStore } from "../../../src/store/index.js";
import { findMooncake, PYTHON } from "../../helpers/mooncake-wheel.js";
import { ownLibrary } from "../mooncake-native/own-library.js";
import { MapBackend } from "./map-backend.js";

const MIB = 1 << 20;

/** Memory of the segment of each world. */
const SEGMENT = 512 * MIB;

/** A backend and what its stores work on. */
export interface World extends AsyncDisposable {
  readonly name: string;
  /** Whether its stores put and remove. */
  readonly writes: boolean;
  /** Whether its stores overwrite. */
  readonly upserts: boolean;
  /** A store; all stores of a world see the same objects, unless it is embedded. */
  open(): Promise<KvStore>;
  /** Stores objects that stores opened later, or already, can read; embedded: in `store`. */
  seed(store: KvStore, keys: readonly string[], values: readonly Uint8Array[]): Promise<void>;
}

/** Every backend of this machine; those on the real Mooncake only where its wheel is. */
export async function worlds(): Promise<World[]> {
  const installation = findMooncake();
  const cluster = installation && (await MooncakeCluster.start(installation, { segmentBytes: SEGMENT }));
  return [
    embeddedWorld(),
    mapWorld(),
    await nativeWorld(),
    ...(cluster ? [mooncakeWorld(cluster), adminWorld(cluster)] : []),
  ];
}

/** Puts values through the store itself. */
async function putAll(store: KvStore, keys: readonly string[], values: readonly Uint8Array[]): Promise<void> {
  (await store.put(keys, values)).throwIfFailed();
}

const nothing = async (): Promise<void> => {};

function embeddedWorld(): World {
  return {
    name: "embedded",
    writes: true,
    upserts: true,
    open: () => openStore({ backend: "embedded", capacity: SEGMENT, defaultKvLeaseTtl: 60_000 }),
    seed: putAll,
    [Symbol.asyncDispose]: nothing,
  };
}

/** The backend that docs/stores.md tells how to make. */
function mapWorld(): World {
  const objects = new Map<string, Uint8Array>();
  return {
    name: "map",
    writes: true,
    upserts: true,
    open: async () => CheckedStore.over(new MapBackend(objects)),
    seed: putAll,
    [Symbol.asyncDispose]: nothing,
  };
}

/** Our own C library: its cluster lives in this process, as long as one store with the segment is open. */
async function nativeWorld(): Promise<World> {
  const library = ownLibrary();
  const master = `suite:${1000 + (process.pid % 60_000)}`;
  const open = (globalSegmentSize: number): Promise<KvStore> =>
    openStore({ backend: "mooncake-native", library, master, localHostname: "127.0.0.1", globalSegmentSize });
  const owner = await open(SEGMENT);
  return {
    name: "mooncake-native",
    writes: true,
    upserts: false,
    open: () => open(0),
    seed: putAll,
    [Symbol.asyncDispose]: () => owner.close(),
  };
}

function mooncakeWorld(cluster: MooncakeCluster): World {
  return {
    name: "mooncake",
    writes: true,
    upserts: true,
    open: () => openStore({ backend: "mooncake", master: cluster.masterAddress, python: PYTHON }),
    seed: putAll,
    [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
  };
}

function adminWorld(cluster: MooncakeCluster): World {
  return {
    name: "mooncake-admin",
    writes: false,
    upserts: false,
    open: () => openStore(`mooncake-admin:${cluster.adminUrl}`),
    seed: async (_store, keys, values) => {
      await using writer = await openStore({
        backend: "mooncake",
        master: cluster.masterAddress,
        python: PYTHON,
      });
      await putAll(writer, keys, values);
    },
    [Symbol.asyncDispose]: nothing,
  };
}
