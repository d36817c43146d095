import type { SidecarReplicaList } from "../../../generated/typescript/vllm-0.33/store.js";
import {
  sidecarCodesCodec,
  sidecarReplicaListCodec,
  sidecarSizesCodec,
} from "../../../generated/typescript/vllm-0.33/store-codecs.js";
import type { ReplicaAnswer } from "../shared/answers.js";
import type { ReplicaDescriptor } from "../shared/replica.js";

/** How a reply is read, and how long it may be. Whatever `read` throws, the sidecar that sent it is not believed any more. */
export interface ReplyReader<T> {
  read(frames: Uint8Array[]): T;
  /** Bytes of the longest reply that can be true. */
  readonly most: number;
}

/** Bytes of a reply besides its numbers. */
const FRAME_BYTES = 1 << 10;

/** Bytes that the replicas of one key take at most; one takes about a hundred. */
const REPLICA_BYTES = 16 << 10;

/** One 32-bit number for each of `count` keys, none above `largest`. */
export function codesReply(count: number, largest: number): ReplyReader<Int32Array> {
  return {
    most: FRAME_BYTES + 4 * count,
    read: ([frame]) => {
      const codes = int32(sidecarCodesCodec.fromBinary(frame ?? NOTHING).codes);
      checkCount("codes", codes.length, count);
      const odd = codes.find((code) => code > largest);
      if (odd !== undefined) throw new Error(`a code of ${odd}, which is above ${largest}`);
      return codes;
    },
  };
}

/** One 64-bit number for each of `count` keys. */
export function sizesReply(count: number): ReplyReader<BigInt64Array> {
  return {
    most: FRAME_BYTES + 8 * count,
    read: ([frame]) => {
      const sizes = int64(sidecarSizesCodec.fromBinary(frame ?? NOTHING).sizes);
      checkCount("sizes", sizes.length, count);
      return sizes;
    },
  };
}

/** The replicas of each of `count` keys. */
export function replicasReply(count: number): ReplyReader<ReplicaAnswer> {
  return {
    most: FRAME_BYTES + REPLICA_BYTES * count,
    read: (frames) => replicaRows(sidecarReplicaListCodec.fromBinary(frames), count),
  };
}

const NOTHING: Uint8Array = new Uint8Array(0);
const KINDS: readonly ReplicaDescriptor["kind"][] = ["memory", "disk", "local-disk", "nof", "dfs"];

/** The replicas out of the columns of a reply. */
function replicaRows(list: SidecarReplicaList, keys: number): ReplicaAnswer {
  const codes = int32(list.codes);
  checkCount("codes", codes.length, keys);
  const total = codes.reduce((sum, code) => sum + Math.max(0, code), 0);
  const statuses = lines(list.statuses);
  const kinds = lines(list.kinds);
  const sizes = int64(list.sizes);
  const addresses = int64(list.addresses);
  const ends = new Uint32Array(int32(list.placeEnds).buffer);
  for (const [what, column] of Object.entries({ statuses, kinds, sizes, addresses, ends }))
    checkCount(what, column.length, total);
  const places = Buffer.from(list.places);
  let next = 0;
  let start = 0;
  const one = (): ReplicaDescriptor => {
    const index = next++;
    const end = ends[index]!;
    const kind = KINDS.find((known) => known === kinds[index]);
    if (kind === undefined) throw new Error(`a replica of the kind ${JSON.stringify(kinds[index])}`);
    if (end < start || end > places.length) throw new Error(`a place that ends at ${end}`);
    if (sizes[index]! < 0n) throw new Error(`a replica of ${sizes[index]} bytes`);
    const segment = places.toString("utf8", start, end);
    start = end;
    const address = BigInt.asUintN(64, addresses[index]!);
    return {
      status: statuses[index]!,
      kind,
      size: sizes[index]!,
      segment,
      ...(address === 0n ? {} : { address }),
    };
  };
  return {
    codes,
    replicas: Array.from(codes, (count) => Array.from({ length: Math.max(0, count) }, one)),
  };
}

function checkCount(what: string, found: number, wanted: number): void {
  if (found !== wanted) throw new Error(`${found} ${what} where ${wanted} are due`);
}

/** Numbers of a reply as a typed array with memory of its own; the frame may lie at any address. */
export function int32(frame: Uint8Array): Int32Array {
  return new Int32Array(copied(frame, 4));
}

/** The same for 64-bit numbers. */
export function int64(frame: Uint8Array): BigInt64Array {
  return new BigInt64Array(copied(frame, 8));
}

function copied(frame: Uint8Array, width: number): ArrayBuffer {
  if (frame.length % width !== 0) throw new Error(`${frame.length} bytes where numbers of ${width} are due`);
  return new Uint8Array(frame).buffer;
}

/** Each line ends with a newline. */
function lines(bytes: Uint8Array): string[] {
  return Buffer.from(bytes).toString().split("\n").slice(0, -1);
}
