import type { JsonObject } from "../vectors/handler.js";

/** One line of `mooncake_contract.jsonl`: a fresh world and what happens in it, step by step. */
export interface ContractScenario {
  readonly id: string;
  readonly setup: ContractSetup;
  /** Each with its `op`, its arguments and the recorded results side by side, as the file has them. */
  readonly steps: readonly ContractStep[];
}

/** One step, as the file has it. */
export type ContractStep = JsonObject & { readonly op: string };

/** What a world is made of. */
export interface ContractSetup {
  /** Bytes of the segment that the owner process `O` mounts. */
  readonly segmentBytes: number;
  /** Whether there is an owner process. */
  readonly owner: boolean;
  /** The master's `--default_kv_lease_ttl`, in milliseconds. */
  readonly leaseTtlMs: number;
  /** Further flags of the master, by name, as `put_start_discard_timeout_sec`. */
  readonly masterFlags: Readonly<Record<string, string | number | boolean>>;
  /** Settings of clients that differ from the defaults. */
  readonly clients: Readonly<Record<string, ContractClientSetup>>;
}

/** How one client is set up. */
export interface ContractClientSetup {
  /** Bytes of a segment of its own (`global_segment_size`). Default: 0; of an owner (a name that starts with O): `segmentBytes`. */
  readonly segment: number;
  /** `local_buffer_size`. Default: 16 MiB. */
  readonly local: number;
  /** Bytes of its arena. Default: 32 MiB; of an owner: 0. */
  readonly arena: number;
  /** Whether the arena is registered after setup. Default: true. */
  readonly register: boolean;
  /** Whether setup waits for a `setup_call` step. Default: false. */
  readonly manual: boolean;
  readonly tenant: string | undefined;
}

const MIB = 1 << 20;

/** The settings of client `name`, defaults filled in. */
export function clientSetup(setup: ContractSetup, name: string): ContractClientSetup {
  const owner = name.startsWith("O");
  const defaults: ContractClientSetup = {
    segment: owner ? setup.segmentBytes : 0,
    local: 16 * MIB,
    arena: owner ? 0 : 32 * MIB,
    register: true,
    manual: false,
    tenant: undefined,
  };
  return { ...defaults, ...setup.clients[name] };
}

/** Reads a line of the file; undefined for anything that is no scenario. */
export function parseScenario(text: string): ContractScenario | undefined {
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof line !== "object" || line === null) return undefined;
  const { id, setup, steps } = line as { id?: unknown; setup?: unknown; steps?: unknown };
  if (typeof id !== "string" || typeof setup !== "object" || setup === null || !Array.isArray(steps))
    return undefined;
  if (!steps.every((step) => typeof (step as { op?: unknown } | null)?.op === "string")) return undefined;
  const raw = setup as {
    segment_bytes?: number | undefined;
    owner?: boolean | undefined;
    lease_ttl_ms?: number | undefined;
    master_flags?: ContractSetup["masterFlags"] | undefined;
    clients?: Record<string, Partial<ContractClientSetup>> | undefined;
  };
  return {
    id,
    steps: steps as ContractStep[],
    setup: {
      segmentBytes: raw.segment_bytes ?? 16 * MIB,
      owner: raw.owner ?? true,
      leaseTtlMs: raw.lease_ttl_ms ?? 10_000,
      masterFlags: raw.master_flags ?? {},
      clients: (raw.clients ?? {}) as ContractSetup["clients"],
    },
  };
}

/** The name of the client that a step speaks to. */
export function clientOf(step: ContractStep): string {
  return typeof step["c"] === "string" ? step["c"] : "A";
}
