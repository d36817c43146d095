import type { SidecarReplicaList } from "../../../generated/typescript/vllm-0.33/store.js";
import type { ReplicaDescriptor } from "../replica.js";
import { int32, int64 } from "./columns.js";

/** The replicas of each key out of the columns of a reply. */
export function replicaRows(list: SidecarReplicaList): ReplicaDescriptor[][] {
  const statuses = lines(list.statuses);
  const kinds = lines(list.kinds);
  const sizes = int64(list.sizes);
  const addresses = int64(list.addresses);
  const ends = int32(list.placeEnds);
  const places = Buffer.from(list.places);
  let next = 0;
  const one = (): ReplicaDescriptor => {
    const index = next++;
    const address = BigInt.asUintN(64, addresses[index]!);
    return {
      status: statuses[index]!,
      kind: kinds[index] as ReplicaDescriptor["kind"],
      size: sizes[index]!,
      segment: places.toString("utf8", index === 0 ? 0 : ends[index - 1]!, ends[index]!),
      ...(address === 0n ? {} : { address }),
    };
  };
  return Array.from(int32(list.codes), (count) => Array.from({ length: Math.max(0, count) }, one));
}

function lines(bytes: Uint8Array): string[] {
  return Buffer.from(bytes).toString().split("\n");
}
