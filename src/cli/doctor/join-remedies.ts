import type { SetupComponent } from "../../store/cluster/setup-failure.js";

const REMEDIES: Readonly<Record<SetupComponent, readonly string[]>> = {
  memory: [
    "Give less memory: globalSegmentSize in --store, or global_segment_size in the configuration",
    "Or let this machine give more: ulimit -v and -l, the memory limit of its container, huge pages",
  ],
  "metadata server": [
    "Is it Mooncake's metadata server, or an etcd? mooncake_master --enable_http_metadata_server=true has one, at http://HOST:8080/metadata",
    "All participants must use the same one; without one, P2PHANDSHAKE for all of them",
  ],
  transport: [
    "rdma needs devices: ibv_devices lists them, device_name picks one",
    "Without them: protocol tcp, for all participants",
  ],
  master: [
    "Is it the RPC port of mooncake_master (rpc_port, 50051), and not that of its HTTP interface?",
    "Client and master must be of the same release: compare mooncake_master --version with the package above",
  ],
  unknown: [
    "Read what Mooncake logged: mooncake-kv doctor --log",
    "Client and master must be of the same release: compare mooncake_master --version with the package above",
    "All participants must use the same metadata server (P2PHANDSHAKE, or one address)",
  ],
};

/** What to do when a process can't join a cluster: `component` is what the details of the error name. */
export function joinRemedies(component: unknown): readonly string[] {
  return typeof component === "string" && Object.hasOwn(REMEDIES, component)
    ? REMEDIES[component as SetupComponent]
    : REMEDIES.unknown;
}
