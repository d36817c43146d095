import { MooncakeKvError } from "../../errors.js";
import { optionError } from "../shared/option-values.js";
import { parseEtcdEndpoints } from "./etcd-endpoints.js";
import type { HostPort } from "./host-port.js";
import { withoutPassword } from "./redacted.js";
import { connectAny, whyUnreachable } from "./tcp-probe.js";

/** How members of a cluster do without a metadata server: they ask each other. */
export const P2P_HANDSHAKE = "P2PHANDSHAKE";

/** A metadata server as Mooncake reads `metadata_server`. */
export interface MetadataServer {
  /** `handshake`: there is none. `http`: one of Mooncake's own. `etcd`: an etcd cluster. */
  readonly kind: "handshake" | "http" | "etcd";
  /** Who is asked: one host for `http`, any of several for `etcd`. */
  readonly endpoints: readonly HostPort[];
}

const EXPECTED =
  "P2PHANDSHAKE, http://host:port/metadata, etcd://host:port (several with ; between them), or host:port, which is etcd, too";

/**
 * Reads `metadata_server` as Mooncake does: `P2PHANDSHAKE`, `http(s)://...`, `etcd://...`, and without a scheme the
 * members of an etcd. Mirrors `parseConnectionString` and `MetadataStoragePlugin::Create` of Mooncake's
 * `transfer_metadata_plugin.cpp`.
 *
 * @param name what the value is called where it stands, for the error.
 * @throws MooncakeKvError `ERR_CONFIG` for any other scheme, which would end the process of Mooncake's client (SIGABRT;
 * schemes are in lower case there), and for an address that no connection can be made to. No password is in the text.
 */
export function parseMetadataServer(value: string, name: string = "metadataServer"): MetadataServer {
  if (value === P2P_HANDSHAKE) return { kind: "handshake", endpoints: [] };
  const refused = (expected: string): MooncakeKvError => optionError(name, withoutPassword(value), expected);
  if (/^\s*p2phandshake\s*$/i.test(value))
    throw refused(
      `written ${P2P_HANDSHAKE}, in upper case and without blanks: Mooncake takes it for an etcd`,
    );
  const end = value.indexOf("://");
  const scheme = end < 0 ? "etcd" : value.slice(0, end);
  if (scheme === "http" || scheme === "https") {
    const endpoint = httpEndpoint(value);
    if (endpoint) return { kind: "http", endpoints: [endpoint] };
    throw refused("http://host:port/metadata, without ? and #: Mooncake appends ?key=");
  }
  if (scheme === "etcd") {
    const endpoints = parseEtcdEndpoints(end < 0 ? value : value.slice(end + "://".length));
    if (endpoints) return { kind: "etcd", endpoints };
    throw refused(`${EXPECTED}; a member of an etcd needs its port, which is mostly 2379`);
  }
  const lower = /^(https?|etcd)$/i.test(scheme)
    ? "Mooncake's client knows that scheme in lower case only, and"
    : `Mooncake's official package is built without ${JSON.stringify(scheme)}, and its client`;
  throw refused(`${EXPECTED}. ${lower} ends its process for another one (SIGABRT)`);
}

/**
 * Connects to the metadata server that an option or a file names, and hangs up again; one that answers of several is
 * enough. There is nothing to do for `P2PHANDSHAKE`.
 *
 * @throws MooncakeKvError `ERR_CONFIG` as `parseMetadataServer`; `ERR_STORE` when nobody answers within `timeoutMs`
 * milliseconds: it names the metadata server.
 */
export async function probeMetadataServer(metadataServer: string, timeoutMs: number): Promise<void> {
  const { kind, endpoints } = parseMetadataServer(metadataServer);
  if (kind === "handshake") return;
  try {
    await connectAny(endpoints, timeoutMs);
  } catch (error) {
    const shown = withoutPassword(metadataServer);
    const start =
      kind === "http"
        ? "start it (mooncake_master --enable_http_metadata_server=true has one)"
        : "start that etcd";
    throw new MooncakeKvError(
      "ERR_STORE",
      `the metadata server ${shown} does not answer (${whyUnreachable(error)}); ${start}, or correct metadata_server`,
      { component: "metadata server", metadataServer: shown },
      { cause: error },
    );
  }
}

function httpEndpoint(address: string): HostPort | undefined {
  if (!URL.canParse(address)) return undefined;
  const { protocol, hostname, port } = new URL(address);
  if (hostname === "" || /[?#\s]/.test(address)) return undefined;
  const otherwise = protocol === "https:" ? 443 : 80;
  return { host: hostname.replace(/^\[|\]$/g, ""), port: port === "" ? otherwise : Number(port) };
}
