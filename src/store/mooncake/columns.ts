/** Numbers of a reply as a typed array with memory of its own; the frame may lie at any address. */
export function int32(frame: Uint8Array): Int32Array {
  const bytes = new Uint8Array(frame);
  return new Int32Array(bytes.buffer, 0, bytes.length >> 2);
}

/** The same for 64-bit numbers. */
export function int64(frame: Uint8Array): BigInt64Array {
  const bytes = new Uint8Array(frame);
  return new BigInt64Array(bytes.buffer, 0, bytes.length >> 3);
}
