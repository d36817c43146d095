import type { MooncakeStoreOptions } from "../../store/mooncake/options.js";
import { buildChecks } from "./build-checks.js";
import { clusterChecks } from "./cluster-checks.js";
import type { Finding } from "./finding.js";
import { ok } from "./finding.js";
import { pythonChecks } from "./python-checks.js";

/** What is to be examined. */
export interface Examination {
  /** Options of the Mooncake store that is wanted; undefined when none is: then only the addon is needed. */
  readonly mooncake: MooncakeStoreOptions | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** What an examination found. */
export interface Diagnosis {
  readonly findings: readonly Finding[];
  /** What Mooncake logged meanwhile; empty when it did not run. */
  readonly log: string;
}

/** Looks at everything that the package works with. Nothing is changed but for one object that is put and removed again. */
export async function examine({ mooncake, environment }: Examination): Promise<Diagnosis> {
  const python = mooncake?.python ?? (environment["MOONCAKE_KV_PYTHON"] || "python3");
  const [build, pythonFindings] = await Promise.all([
    buildChecks(environment),
    pythonChecks(python, environment, mooncake !== undefined),
  ]);
  const local = [
    ok("Node", `${process.versions.node}, ${process.platform}-${process.arch}`),
    ...build,
    ...pythonFindings,
  ];
  if (mooncake === undefined) return { findings: local, log: "" };
  const usable = local.every(({ status }) => status !== "missing");
  const cluster = await clusterChecks(mooncake, environment, usable);
  return { findings: [...local, ...cluster.findings], log: cluster.log };
}
