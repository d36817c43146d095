import { isMooncakeKvError } from "../../errors.js";
import { reachMaster } from "../../store/cluster/master-address.js";
import { parseMetadataServer, probeMetadataServer } from "../../store/cluster/metadata-server.js";
import { withoutPassword } from "../../store/cluster/redacted.js";
import { sizeText } from "../../store/cluster/size-text.js";
import { type MooncakeStore, type MooncakeStoreOptions, openStore } from "../../store/index.js";
import { type ResolvedMooncakeOptions, resolveMooncakeOptions } from "../../store/mooncake/options.js";
import { type Finding, missing, ok, skipped } from "./finding.js";
import { joinRemedies } from "./join-remedies.js";
import { roundTrip } from "./round-trip.js";

const SUBJECTS = ["configuration", "master", "connection", "segment", "round trip"] as const;

/** Milliseconds that a component may take to accept a connection. */
const PROBE_MS = 2_000;

type Environment = Readonly<Record<string, string | undefined>>;

/** A cluster to look at. */
export interface ClusterQuestion {
  readonly options: MooncakeStoreOptions;
  /** Whether to see, too, if this machine can give the memory that the options say. */
  readonly withMemory: boolean;
  readonly environment: Environment;
  /** Whether all that runs here is there. */
  readonly usable: boolean;
}

/** What was found out about a cluster. */
export interface ClusterReport {
  readonly findings: readonly Finding[];
  /** What Mooncake logged meanwhile. */
  readonly log: string;
}

/**
 * Whether the cluster that the options name works: each check needs the one before. The object goes there and back without
 * memory of this process, so that a pool is never called usable because of it.
 */
export async function clusterChecks(question: ClusterQuestion): Promise<ClusterReport> {
  const findings: Finding[] = [];
  const log: string[] = [];
  for await (const finding of examine(question, log)) findings.push(finding);
  const needs = question.usable ? findings.at(-1)!.subject : "what is missing above";
  const seen = findings.map(({ subject }) => subject);
  const rest = SUBJECTS.filter((subject) => !seen.includes(subject)).map((subject) =>
    skipped(subject, `needs: ${needs}`),
  );
  return { findings: [...findings, ...rest], log: log.join("") };
}

async function* examine(question: ClusterQuestion, log: string[]): AsyncGenerator<Finding> {
  const resolved = yield* configuration(question);
  if (resolved === undefined) return;
  const reachable = yield* components(resolved);
  if (!reachable || !question.usable) return;
  const store = await join(question, resolved, "requester", log);
  if (!("close" in store)) {
    yield store;
    return;
  }
  try {
    yield ok(
      "connection",
      `joined as ${store.hostname} with ${store.version}, giving no memory to the cluster`,
    );
    if (question.withMemory && resolved.globalSegmentSize > 0n)
      yield await ownMemory(question, resolved, log);
    yield* roundTrip(store);
  } finally {
    await store.close();
    log.push(store.log());
  }
}

async function* configuration({
  options,
  environment,
}: ClusterQuestion): AsyncGenerator<Finding, ResolvedMooncakeOptions | undefined> {
  try {
    const resolved = await resolveMooncakeOptions(options, { ...environment });
    const { masterServerAddress, metadataServer, protocol, globalSegmentSize } = resolved;
    const segment = globalSegmentSize > 0n ? `, a segment of ${sizeText(globalSegmentSize)}` : "";
    yield ok(
      "configuration",
      withoutPassword(`master ${masterServerAddress}, metadata ${metadataServer}, ${protocol}${segment}`),
    );
    return resolved;
  } catch (error) {
    yield missing("configuration", true, messageOf(error), [
      'Write a file as {"master_server_address": "127.0.0.1:50051", "metadata_server": "P2PHANDSHAKE", "protocol": "tcp"} and name it: --store mooncake:./mooncake.json, or MOONCAKE_CONFIG_PATH',
      "Or name the master alone: --store mooncake:?master=127.0.0.1:50051",
    ]);
    return undefined;
  }
}

/** Master and metadata server: whether somebody listens there. */
async function* components({
  masterServerAddress,
  metadataServer,
}: ResolvedMooncakeOptions): AsyncGenerator<Finding, boolean> {
  const master = withoutPassword(masterServerAddress);
  try {
    const { contacted, localAddress } = await reachMaster(masterServerAddress, PROBE_MS);
    if (contacted === "unknown")
      yield skipped("master", `${master} can only be contacted by Mooncake itself`);
    else if (contacted === "etcd")
      yield ok("master", `the etcd of ${master} accepts connections; it names the leading master`);
    else yield ok("master", `${master} accepts connections (this machine: ${localAddress})`);
  } catch (error) {
    yield missing("master", true, messageOf(error), [
      "Start one: mooncake_master --rpc_port=50051 (it comes with the Python package)",
      "Does it run elsewhere? Correct master_server_address, and let the port through the firewall",
    ]);
    return false;
  }
  const { kind } = parseMetadataServer(metadataServer);
  if (kind === "handshake") return true;
  try {
    await probeMetadataServer(metadataServer, PROBE_MS);
    yield ok(
      "metadata server",
      `${withoutPassword(metadataServer)} accepts connections${kind === "etcd" ? " (an etcd)" : ""}`,
    );
    return true;
  } catch (error) {
    yield missing("metadata server", true, messageOf(error), joinRemedies("metadata server"));
    return false;
  }
}

/** Joins the cluster once more with the memory that was asked for, and leaves it again. */
async function ownMemory(
  question: ClusterQuestion,
  resolved: ResolvedMooncakeOptions,
  log: string[],
): Promise<Finding> {
  const store = await join(question, resolved, "configured", log);
  if (!("close" in store)) return { ...store, subject: "own memory" };
  await store.close();
  log.push(store.log());
  return ok("own memory", `${sizeText(resolved.globalSegmentSize)} given to the cluster, and taken back`);
}

/** A store on the cluster, or why there is none. */
async function join(
  { options, environment }: ClusterQuestion,
  resolved: ResolvedMooncakeOptions,
  role: "requester" | "configured",
  log: string[],
): Promise<MooncakeStore | Finding> {
  const { masterServerAddress: master, metadataServer, protocol, deviceName, tenantId, python } = resolved;
  const { globalSegmentSize: _size, ...others } = options;
  try {
    return await openStore({
      backend: "mooncake",
      ...others,
      ...{ master, metadataServer, protocol, deviceName, tenantId, python, role },
      localHostname: resolved.localHostname,
      globalSegmentSize: role === "requester" ? 0 : resolved.globalSegmentSize,
      environment: environment as Record<string, string>,
    });
  } catch (error) {
    const details = isMooncakeKvError(error) ? error.details : {};
    log.push(...((details["log"] as string[] | undefined) ?? []).map((line) => `${line}\n`));
    return missing("connection", true, messageOf(error), joinRemedies(details["component"]));
  }
}

function messageOf(error: unknown): string {
  return isMooncakeKvError(error) ? error.message : String(error);
}
