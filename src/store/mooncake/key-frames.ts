import { sidecarKeysCodec } from "../../../generated/typescript/vllm-0.33/store-codecs.js";
import type { FlatKeys } from "../../key/key-table.js";

const NO_BYTES: Uint8Array = new Uint8Array(0);

/** The bytes of a typed array, without a copy. */
export function bytesOf(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(array.buffer as ArrayBuffer, array.byteOffset, array.byteLength);
}

/** Where the joined keys of a command lie when its frames don't hold them. */
export interface KeyPlace {
  readonly region: number;
  readonly offset: number;
}

/** The keys of a batch, joined, without a copy. */
export function joinedKeys({ bytes, offsets }: FlatKeys): Uint8Array {
  return bytes.subarray(offsets[0]!, offsets.at(-1)!);
}

/** The frames of keys. With a `place` their bytes are there already. */
export function keyFrames(keys: FlatKeys, place?: KeyPlace): Uint8Array[] {
  const { offsets } = keys;
  const joined = joinedKeys(keys);
  const keyLength = commonLength(offsets);
  const start = offsets[0]!;
  return sidecarKeysCodec.toBinary({
    keyCount: offsets.length - 1,
    keyLength,
    keyEnds: keyLength > 0 ? NO_BYTES : bytesOf(offsets.subarray(1).map((end) => end - start)),
    region: place?.region ?? 0,
    offset: BigInt(place?.offset ?? 0),
    size: place ? joined.length : 0,
    keys: place ? NO_BYTES : joined,
  });
}

/** The length that all keys share; 0 when they differ or are empty. */
function commonLength(offsets: Uint32Array): number {
  const length = offsets.length > 1 ? offsets[1]! - offsets[0]! : 0;
  for (let i = 2; i < offsets.length; i++) if (offsets[i]! - offsets[i - 1]! !== length) return 0;
  return length;
}
