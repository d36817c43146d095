import { createHash } from "node:crypto";

/** Multiplies two 64-bit words, each as high and low half, modulo 2^64; leaves the halves in `out`. */
function multiply(ah: number, al: number, bh: number, bl: number, out: Uint32Array): void {
  const a0 = al & 0xffff;
  const a1 = al >>> 16;
  const b0 = bl & 0xffff;
  const b1 = bl >>> 16;
  const low = a0 * b0;
  const middle = a1 * b0 + (low >>> 16);
  const middle2 = a0 * b1 + (middle % 0x1_0000);
  out[1] = ((middle2 << 16) | (low & 0xffff)) >>> 0;
  out[0] =
    (a1 * b1 +
      Math.floor(middle / 0x1_0000) +
      Math.floor(middle2 / 0x1_0000) +
      Math.imul(ah, bl) +
      Math.imul(al, bh)) >>>
    0;
}

/**
 * The bytes that the recordings call pattern(seed, size): little-endian words, word i = mix(seed * 0x9E3779B97F4A7C15 + i)
 * with the finaliser of splitmix64, cut to size. Written into `target`.
 */
export function fillPattern(target: Uint8Array, seed: number): void {
  const start = (BigInt(seed) * 0x9e37_79b9_7f4a_7c15n) & 0xffff_ffff_ffff_ffffn;
  let high = Number(start >> 32n);
  let low = Number(start & 0xffff_ffffn);
  const product = new Uint32Array(2);
  const view = new DataView(target.buffer, target.byteOffset, target.length);
  const last = new DataView(new ArrayBuffer(8));
  for (let at = 0; at < target.length; at += 8) {
    let h = high;
    let l = low;
    l = (l ^ ((h << 2) | (l >>> 30))) >>> 0;
    h = (h ^ (h >>> 30)) >>> 0;
    multiply(h, l, 0xbf58_476d, 0x1ce4_e5b9, product);
    h = product[0]!;
    l = product[1]!;
    l = (l ^ ((h << 5) | (l >>> 27))) >>> 0;
    h = (h ^ (h >>> 27)) >>> 0;
    multiply(h, l, 0x94d0_49bb, 0x1331_11eb, product);
    h = product[0]!;
    l = product[1]!;
    l = (l ^ ((h << 1) | (l >>> 31))) >>> 0;
    h = (h ^ (h >>> 31)) >>> 0;
    if (target.length - at >= 8) {
      view.setUint32(at, l, true);
      view.setUint32(at + 4, h, true);
    } else {
      last.setUint32(0, l, true);
      last.setUint32(4, h, true);
      target.set(new Uint8Array(last.buffer, 0, target.length - at), at);
    }
    low = (low + 1) >>> 0;
    if (low === 0) high = (high + 1) >>> 0;
  }
}

/** pattern(seed, size) in memory of its own. */
export function pattern(seed: number, size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  fillPattern(bytes, seed);
  return bytes;
}

/** SHA-256 of byte ranges joined, in hex. */
export function sha256(...parts: readonly Uint8Array[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}
