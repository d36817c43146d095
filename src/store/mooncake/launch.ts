import { fstatSync } from "node:fs";
import {
  sidecarRegisterCodec,
  sidecarSetupCodec,
  sidecarSetupReplyCodec,
  sidecarUnregisterCodec,
} from "../../../generated/typescript/vllm-0.33/store-codecs.js";
import type { MooncakeKvError } from "../../errors.js";
import { reachMaster } from "../cluster/master-address.js";
import { probeMetadataServer } from "../cluster/metadata-server.js";
import { setupFailure } from "../cluster/setup-failure.js";
import { CODE } from "../shared/codes.js";
import { sidecarError } from "./failure.js";
import type { LogBuffer } from "./log-buffer.js";
import type { ResolvedMooncakeOptions } from "./options.js";
import { codesReply, int32 } from "./replies.js";
import type { SharedMemory } from "./shared-memory.js";
import { SidecarClient } from "./sidecar-client.js";
import { INHERITED } from "./sidecar-process.js";

/** Milliseconds that a component of the cluster may take to accept a connection. */
const PROBE_MS = 2_000;

/** Bytes of the reply to a setup at most: a host name and the name of a package. */
const SETUP_REPLY = 8 << 10;

/** Commands beyond `threads` that the sidecar can work on: those that nobody waits for any more. */
export const SPARE_THREADS = 24;

/** A sidecar that is set up, and what it said of itself. */
export interface Launched {
  readonly client: SidecarClient;
  readonly hostname: string;
  readonly version: string;
}

/**
 * Starts a process, sets Mooncake's client up in it, and maps `memories` there, of which the first must be mapped.
 *
 * @throws MooncakeKvError `ERR_STORE` when a component of the cluster can't be reached, or the set-up fails or takes longer
 * than `openDeadlineMs`; the component is in the text. Nothing is left of the process then.
 */
export async function launchSidecar(
  options: ResolvedMooncakeOptions,
  memories: () => readonly SharedMemory[],
  log: LogBuffer,
): Promise<Launched> {
  const { masterServerAddress, metadataServer, openDeadlineMs, localHostname } = options;
  const started = performance.now();
  const probeMs = Math.min(PROBE_MS, openDeadlineMs);
  const { localAddress = "127.0.0.1" } = await reachMaster(masterServerAddress, probeMs);
  await probeMetadataServer(metadataServer, probeMs);
  const inherited = memories().map((shared, index) => {
    const fd = shared.memory.fileDescriptor!;
    return { shared, fd, owner: 0, descriptor: INHERITED + index, inode: inodeOf(fd) };
  });
  const client = new SidecarClient({
    python: options.python,
    threads: options.threads + SPARE_THREADS,
    environment: options.environment,
    descriptors: inherited.map(({ fd }) => fd),
    unresponsiveMs: options.unresponsiveMs,
    log,
  });
  const left = openDeadlineMs - (performance.now() - started);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    client.kill(`was not set up within ${openDeadlineMs} ms`);
  }, left);
  try {
    return await client.patiently(async () => {
      const said = await setUp(client, options, localHostname ?? localAddress, log);
      for (const shared of memories()) shared.mapped = false;
      for (const place of inherited) await mapInSidecar(client, place);
      if (!memories()[0]!.mapped) throw sidecarError("it can't map the staging memory");
      // What was unregistered meanwhile found no process to tell.
      for (const { shared } of inherited)
        if (!memories().includes(shared)) await unmapInSidecar(client, shared.number);
      return { client, ...said };
    });
  } catch (error) {
    client.kill("could not be set up");
    await client.ended;
    if (!late) throw error;
    throw failedSetup(CODE.RPC_TIMEOUT, options, log, openDeadlineMs);
  } finally {
    clearTimeout(timer);
  }
}

/** Where the sidecar finds shared memory. */
export interface Place {
  readonly shared: SharedMemory;
  /** The process that has the descriptor open; 0 for one that the sidecar inherited. */
  readonly owner: number;
  readonly descriptor: number;
  readonly inode: bigint;
}

/** The place of memory that this process has open. */
export function placeHere(shared: SharedMemory): Place {
  const descriptor = shared.memory.fileDescriptor!;
  return { shared, owner: process.pid, descriptor, inode: inodeOf(descriptor) };
}

/** Maps and registers memory. Some that the process refuses stays unmapped there: its bytes go through staging. */
export async function mapInSidecar(client: SidecarClient, { shared, ...place }: Place): Promise<void> {
  const { number, memory } = shared;
  const command = sidecarRegisterCodec.toBinary({
    region: number,
    size: BigInt(memory.size),
    owner: place.owner,
    descriptor: place.descriptor,
    inode: place.inode,
  });
  try {
    const [code] = await client.patiently(() => client.ask(command, codesReply(1, CODE.OK)));
    shared.mapped = code === CODE.OK;
  } catch (error) {
    if (client.failure) throw error;
  }
}

/** Unmaps memory that no command uses. */
export async function unmapInSidecar(client: SidecarClient, number: number): Promise<void> {
  await client.ask(sidecarUnregisterCodec.toBinary({ region: number }), codesReply(1, CODE.OK));
}

async function setUp(
  client: SidecarClient,
  options: ResolvedMooncakeOptions,
  hostname: string,
  log: LogBuffer,
): Promise<{ hostname: string; version: string }> {
  const text = (value: string): Uint8Array => Buffer.from(value);
  const command = sidecarSetupCodec.toBinary({
    globalSegmentSize: options.globalSegmentSize,
    localBufferSize: options.localBufferSize,
    localHostname: text(hostname),
    metadataServer: text(options.metadataServer),
    protocol: text(options.protocol),
    rdmaDevices: text(options.deviceName),
    masterServerAddress: text(options.masterServerAddress),
    tenantId: text(options.tenantId),
  });
  const { code, ...said } = await client.ask(command, {
    most: SETUP_REPLY,
    read: (frames) => {
      const reply = sidecarSetupReplyCodec.fromBinary(frames);
      const codes = int32(reply.codes);
      if (codes.length !== 1) throw new Error(`${codes.length} codes where 1 is due`);
      return {
        code: codes[0]!,
        hostname: Buffer.from(reply.hostname).toString(),
        version: Buffer.from(reply.version).toString(),
      };
    },
  });
  if (code === CODE.OK) return said;
  throw failedSetup(code, options, log);
}

function failedSetup(
  code: number,
  { masterServerAddress: master, metadataServer, globalSegmentSize }: ResolvedMooncakeOptions,
  log: LogBuffer,
  timeoutMs?: number,
): MooncakeKvError {
  return setupFailure({
    code,
    master,
    metadataServer,
    globalSegmentSize,
    logTail: log.tail(20),
    ...(timeoutMs !== undefined && { timeoutMs }),
  });
}

function inodeOf(descriptor: number): bigint {
  return fstatSync(descriptor, { bigint: true }).ino;
}
