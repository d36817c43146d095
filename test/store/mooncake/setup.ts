import { existsSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { MooncakeCluster } from "../../../src/conformance/contract/mooncake/cluster.js";
import type { MooncakeStoreOptions } from "../../../src/store/mooncake/options.js";
import { type MooncakeStore, openStore } from "../../../src/store/open-store.js";
import { findMooncake, PYTHON } from "../../helpers/mooncake-wheel.js";

/** The wheel; undefined where there is none. In CI that is an error. */
export const installation: ReturnType<typeof findMooncake> = findMooncake();

/** A store of ours on a cluster. */
export function openStoreOn(
  cluster: MooncakeCluster,
  options: MooncakeStoreOptions = {},
): Promise<MooncakeStore> {
  return openStore({ backend: "mooncake", master: cluster.masterAddress, python: PYTHON, ...options });
}

/** Bytes that differ from place to place. */
export function pattern(seed: number, size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  for (let i = 0, word = seed * 2_654_435_761; i < size; i++) {
    word = (Math.imul(word ^ (word >>> 15), 0x2c1b3c6d) + i) >>> 0;
    bytes[i] = word >>> 11;
  }
  return bytes;
}

/** What a process holds of the system. */
export interface Holdings {
  readonly descriptors: number;
  readonly children: number;
  /** Mappings of arenas. */
  readonly arenas: number;
}

/** What this process holds now. */
export function holdings(): Holdings {
  return {
    descriptors: readdirSync("/proc/self/fd").length,
    children: childrenOf(process.pid).length,
    arenas: readFileSync("/proc/self/maps", "utf8").split("memfd:mooncake-kv-arena").length - 1,
  };
}

/** The living children of a process. */
export function childrenOf(pid: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((child) => statusOf(child).parent === pid && statusOf(child).state !== "Z");
}

/** Whether a process runs. */
export function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}`) && statusOf(pid).state !== "Z";
}

/** Stops a process, and waits until it stands. */
export async function freeze(pid: number): Promise<void> {
  process.kill(pid, "SIGSTOP");
  await until("the process stands", () => statusOf(pid).state === "T");
}

/** Waits until something holds. */
export async function until(what: string, holds: () => boolean, limitMs = 5_000): Promise<number> {
  const started = performance.now();
  while (!holds()) {
    if (performance.now() - started > limitMs) throw new Error(`${what}: not within ${limitMs} ms`);
    await sleep(10);
  }
  return performance.now() - started;
}

function statusOf(pid: number): { state: string; parent: number } {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    const [state = "", parent = ""] = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { state, parent: Number(parent) };
  } catch {
    return { state: "Z", parent: 0 };
  }
}
