import { MooncakeKvError } from "../../errors.js";
import { CODE, storeCode } from "../shared/codes.js";
import { P2P_HANDSHAKE } from "./metadata-server.js";
import { withoutPassword } from "./redacted.js";
import { sizeText } from "./size-text.js";

/** A component that may have failed when a process joined a cluster: `details.component` of `setupFailure`. */
export type SetupComponent = "memory" | "metadata server" | "transport" | "master" | "unknown";

/** A set-up of Mooncake's client that failed, and what it was to do. */
export interface FailedSetup {
  /** Mooncake's result code; -901 when it had no answer in time. */
  readonly code: number;
  /** `master_server_address`. */
  readonly master: string;
  /** `metadata_server`. */
  readonly metadataServer: string;
  /** Bytes that the process wanted to give to the cluster. */
  readonly globalSegmentSize: bigint;
  /** The last lines of Mooncake's log, as it wrote them; empty where they are not known. 20 hold an attempt. */
  readonly logTail: readonly string[];
  /** Milliseconds that the set-up had, when it had no answer in time. */
  readonly timeoutMs?: number | undefined;
}

/** A line of glog that tells of an error or of the end of the process, and what stands before its text. */
const ERROR_LINE = /^(?:[EF]\d{4,8} [\d:.]+ +\d+ [^\s\]]+\] |.*?\b(?:ERROR|FATAL)\b\s*)/;

/** Errors that Mooncake logs although all is well. */
const NO_ERROR = /^(?:Local segment descriptor not found|GET \S+ http=404)/;

/** Errors that Mooncake logs because of an earlier one, which says more. */
const CONSEQUENCE = /^Failed to (?:create client|initialize transfer engine|(?:set|remove) location)/;

/** What the log says, by component. The first that fits counts: a metadata server's lines have `etcd` and `http`, too. */
const SIGNS: readonly (readonly [component: SetupComponent, sign: RegExp])[] = [
  ["memory", /allocat|bad_alloc|Total size must be|mmap/i],
  ["metadata server", /EtcdStoragePlugin|HTTPStoragePlugin|metadata|rpc_meta/i],
  ["transport", /rdma|RNIC|unsupported_protocol|install \S+ transport|topology/i],
  ["master", /master|RPC call|Client not available|etcd|HA backend/i],
];

/** What Mooncake logs when it begins, and when the master has answered; nothing of it with `MC_LOG_LEVEL=ERROR`. */
const STARTED = /\bclient_id=/;
const MASTER_ANSWERED = /Storage root directory|Transfer Engine/;

/**
 * The error for a set-up of Mooncake's client that gave a code: it names the code, the component that most likely failed,
 * and the last error of Mooncake's log that says something. `details` has `component`, `code`, `master`, `metadataServer` and
 * `log`.
 */
export function setupFailure(failed: FailedSetup): MooncakeKvError {
  const { code, logTail } = failed;
  const errors = logTail.flatMap(errorText);
  const line = errors.findLast((text) => !CONSEQUENCE.test(text)) ?? errors.at(-1);
  const component = likelyComponent(failed, line);
  const [master, metadataServer] = [failed.master, failed.metadataServer].map(withoutPassword);
  const gave = failed.timeoutMs === undefined ? `; setup gave ${storeCode(code).name} (${code})` : "";
  const said = line === undefined ? "" : `; Mooncake's log says: ${line}`;
  return new MooncakeKvError(
    "ERR_STORE",
    `the Mooncake cluster of the master ${master} can't be joined: ${cause(failed, component)}${gave}${said}`,
    { component, code, master, metadataServer, log: logTail.map(withoutPassword) },
  );
}

function errorText(line: string): string[] {
  const prefix = ERROR_LINE.exec(line)?.[0];
  if (prefix === undefined) return [];
  const text = line.slice(prefix.length).trim();
  return NO_ERROR.test(text) ? [] : [withoutPassword(text)];
}

function likelyComponent(failed: FailedSetup, line: string | undefined): SetupComponent {
  const { code, metadataServer, globalSegmentSize, logTail } = failed;
  const shown = SIGNS.find(([, sign]) => line !== undefined && sign.test(line))?.[0];
  if (shown !== undefined) return shown;
  if (failed.timeoutMs !== undefined) {
    // Mooncake's client speaks to the master first, and to the metadata server when that has answered.
    if (logTail.some((text) => MASTER_ANSWERED.test(text)))
      return metadataServer === P2P_HANDSHAKE ? "unknown" : "metadata server";
    return logTail.some((text) => STARTED.test(text)) ? "master" : "unknown";
  }
  // Without a log: what else is refused has been checked before, and the metadata server is asked first.
  if (code === CODE.INVALID_PARAMS && globalSegmentSize > 0n) return "memory";
  if (code === CODE.INTERNAL_ERROR && metadataServer !== P2P_HANDSHAKE) return "metadata server";
  return code === CODE.RPC_FAIL || code === CODE.INVALID_VERSION ? "master" : "unknown";
}

function cause(failed: FailedSetup, component: SetupComponent): string {
  const { metadataServer, globalSegmentSize, timeoutMs, code } = failed;
  const late = timeoutMs === undefined ? "" : `there was no answer within ${timeoutMs} ms`;
  const because = (text: string): string => (late === "" ? text : `${late}: ${text}`);
  switch (component) {
    case "memory":
      return because(
        globalSegmentSize > 0n
          ? `${sizeText(globalSegmentSize)} of memory for the pool could not be had; give less, or raise the limits of this machine`
          : "memory for Mooncake's own buffer could not be had; make localBufferSize smaller",
      );
    case "metadata server":
      return because(`the metadata server ${withoutPassword(metadataServer)} did not do its part`);
    case "transport":
      return because("the network devices for the protocol could not be used");
    case "master":
      return because(
        code === CODE.INVALID_VERSION
          ? "the master is of another release than this client"
          : "the master did not do its part",
      );
    default:
      return late || "Mooncake's client refused";
  }
}
