import type { MooncakeStoreOptions } from "../../store/index.js";
import { givesMemoryItself } from "../ask-only.js";
import { buildChecks } from "./build-checks.js";
import { clusterChecks } from "./cluster-checks.js";
import type { Finding } from "./finding.js";
import { ok, skipped } from "./finding.js";
import { packageChecks } from "./package-checks.js";
import { pythonChecks } from "./python-checks.js";
import { storeCheck, storeUriCheck } from "./store-check.js";

/** What is to be examined. */
export interface Examination {
  /** The URI of the store that is wanted. */
  readonly store: string;
  /** The options in it where it is a `mooncake:` store: that one needs Python, and has checks of its own. */
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
export async function examine({ store, mooncake, environment }: Examination): Promise<Diagnosis> {
  const python = mooncake?.python ?? (environment["MOONCAKE_KV_PYTHON"] || "python3");
  const [build, pythonFindings] = await Promise.all([
    // The admin interface is HTTP.
    buildChecks(environment, !/^mooncake-admin:/i.test(store)),
    pythonChecks(python, environment, mooncake !== undefined),
  ]);
  const local = [
    ok("Node", `${process.versions.node}, ${process.platform}-${process.arch}`),
    ...build,
    ...(await packageChecks(
      build.some(({ subject, status }) => subject === "native addon" && status === "missing"),
    )),
    ...pythonFindings,
  ];
  const usable = local.every(({ status }) => status !== "missing");
  if (mooncake === undefined) {
    const finding = usable
      ? await storeCheck(store)
      : ((await storeUriCheck(store)) ?? skipped("store", "needs: what is missing above"));
    return { findings: [...local, finding], log: "" };
  }
  const withMemory = givesMemoryItself(store);
  const cluster = await clusterChecks({ options: mooncake, withMemory, environment, usable });
  return { findings: [...local, ...cluster.findings], log: cluster.log };
}
