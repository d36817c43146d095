import { sidecarPutCodec } from "../../../generated/typescript/vllm-0.33/store-codecs.js";
import type { PutOptions } from "../shared/call-options.js";
import { bytesOf } from "./key-frames.js";

/** The head of a command that stores the given rows. */
export function putFrames(overwrite: boolean, options: PutOptions, rows: readonly number[]): Uint8Array[] {
  const { groupIds } = options;
  const segments = joined(options.preferredSegments ?? []);
  const groups = joined(groupIds ? rows.map((row) => groupIds[row]!) : []);
  return sidecarPutCodec.toBinary({
    overwrite,
    replicaNum: options.replicaNum ?? 1,
    softPin: options.withSoftPin ?? false,
    softPinTtlMs: BigInt(options.softPinTtlMs ?? 0),
    hardPin: options.withHardPin ?? false,
    segmentEnds: segments.ends,
    segments: segments.bytes,
    groupEnds: groups.ends,
    groups: groups.bytes,
  });
}

function joined(texts: readonly string[]): { readonly ends: Uint8Array; readonly bytes: Uint8Array } {
  const parts = texts.map((text) => Buffer.from(text));
  let end = 0;
  const ends = Uint32Array.from(parts, (part) => {
    end += part.length;
    return end;
  });
  return { ends: bytesOf(ends), bytes: Buffer.concat(parts) };
}
