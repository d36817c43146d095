import { randomBytes } from "node:crypto";
import { isMooncakeKvError } from "../../errors.js";
import { storeCode } from "../../store/codes.js";
import { parseMasterAddress, probeMaster } from "../../store/mooncake/master-address.js";
import { MooncakeStore } from "../../store/mooncake/mooncake-store.js";
import {
  type MooncakeStoreOptions,
  type ResolvedMooncakeOptions,
  resolveMooncakeOptions,
} from "../../store/mooncake/options.js";
import { type Finding, missing, ok, skipped } from "./finding.js";

const SUBJECTS = ["configuration", "master", "connection", "segment", "round trip"] as const;

/** Milliseconds that the master may take to accept a connection. */
const PROBE_MS = 2_000;

/** Bytes of the value that goes there and back. */
const VALUE_BYTES = 100_000;

const NO_AVAILABLE_HANDLE = -200;

type Environment = Readonly<Record<string, string | undefined>>;

/** What was found out about a cluster. */
export interface ClusterReport {
  readonly findings: readonly Finding[];
  /** What Mooncake logged meanwhile. */
  readonly log: string;
}

/** Whether the cluster that the options name works: each check needs the one before. `usable`: all that runs here is there. */
export async function clusterChecks(
  options: MooncakeStoreOptions,
  environment: Environment,
  usable: boolean,
): Promise<ClusterReport> {
  const findings: Finding[] = [];
  const log: string[] = [];
  for await (const finding of examine(options, environment, usable, log)) findings.push(finding);
  const needs = usable ? findings.at(-1)!.subject : "what is missing above";
  const rest = SUBJECTS.slice(findings.length).map((subject) => skipped(subject, `needs: ${needs}`));
  return { findings: [...findings, ...rest], log: log.join("") };
}

async function* examine(
  options: MooncakeStoreOptions,
  environment: Environment,
  usable: boolean,
  log: string[],
): AsyncGenerator<Finding> {
  let resolved: ResolvedMooncakeOptions;
  try {
    resolved = resolveMooncakeOptions(options, { ...environment } as NodeJS.ProcessEnv);
  } catch (error) {
    yield missing("configuration", true, messageOf(error), [
      'Write a file as {"master_server_address": "127.0.0.1:50051", "metadata_server": "P2PHANDSHAKE", "protocol": "tcp"} and name it: --store mooncake:./mooncake.json, or MOONCAKE_CONFIG_PATH',
      "Or name the master alone: --store mooncake:?master=127.0.0.1:50051",
    ]);
    return;
  }
  const { masterServerAddress, metadataServer, protocol } = resolved;
  yield ok("configuration", `master ${masterServerAddress}, metadata ${metadataServer}, ${protocol}`);

  const address = parseMasterAddress(masterServerAddress);
  try {
    const local = address ? await probeMaster(address, PROBE_MS) : "found through its backend";
    yield ok("master", `${masterServerAddress} accepts connections (this machine: ${local})`);
  } catch (error) {
    yield missing("master", true, messageOf(error), [
      "Start one: mooncake_master --rpc_port=50051 (it comes with the Python package)",
      "Does it run elsewhere? Correct master_server_address, and let the port through the firewall",
    ]);
    return;
  }
  if (!usable) return;

  let store: MooncakeStore;
  try {
    store = await MooncakeStore.open({ ...options, environment: environment as Record<string, string> });
  } catch (error) {
    if (isMooncakeKvError(error)) log.push(...((error.details["log"] as string[] | undefined) ?? []));
    yield missing("connection", true, messageOf(error), [
      "Client and master must be of the same release: compare mooncake_master --version with the package above",
      "All participants must use the same metadata server (P2PHANDSHAKE, or one address)",
    ]);
    return;
  }
  try {
    yield ok("connection", `set up as ${store.hostname} with ${store.version}`);
    yield* roundTrip(store);
  } finally {
    await store.close();
    log.push(store.log());
  }
}

async function* roundTrip(store: MooncakeStore): AsyncGenerator<Finding> {
  const key = `mooncake-kv:doctor:${randomBytes(12).toString("hex")}`;
  const value = new Uint8Array(randomBytes(VALUE_BYTES));
  const put = (await store.put([key], [value])).codes[0]!;
  if (put === NO_AVAILABLE_HANDLE) {
    yield missing("segment", true, `a put of ${VALUE_BYTES} bytes finds no room (code -200)`, [
      "No process gives memory to the cluster: start one, such as mooncake_client --host=HOST --global_segment_size=4GB",
      "Or let this process give some: global_segment_size in the configuration, or --store 'mooncake:?globalSegmentSize=1GiB'",
      "There is memory? Then it is full of objects that can't be evicted: wait for their leases to end",
    ]);
    return;
  }
  if (put !== 0) {
    yield missing("segment", true, `a put fails with ${codeText(put)}`, [
      "The owner of the memory must be reachable from here: names and ports of its host (12300-14300, 15000-17000) as it announces them",
    ]);
    return;
  }
  const { replicas } = await store.replicas([key]);
  yield ok("segment", `the master placed an object at ${replicas[0]?.[0]?.segment ?? "an unknown place"}`);
  const { codes, values } = await store.get([key]);
  const equal = values[0] !== undefined && Buffer.from(values[0]).equals(value);
  await store.remove([key], { force: true });
  if (equal) yield ok("round trip", `${VALUE_BYTES} bytes put, read back equal, removed`);
  else
    yield missing(
      "round trip",
      true,
      codes[0]! < 0n
        ? `reading back fails with ${codeText(Number(codes[0]))}`
        : "other bytes came back than were put",
      ["Read what Mooncake logged: mooncake-kv doctor --log"],
    );
}

function codeText(code: number): string {
  const { name, meaning } = storeCode(code);
  return `${name} (${code}: ${meaning})`;
}

function messageOf(error: unknown): string {
  return isMooncakeKvError(error) ? error.message : String(error);
}
