import type { BlockFormat } from "./algorithm.js";
import { ByteWriter } from "./byte-writer.js";
import { cborDumps } from "./cbor.js";
import type { Hashable } from "./hashable.js";
import { pickleDumps, pickleTail } from "./pickle.js";
import {
  BININT,
  BININT1,
  BININT2,
  FRAME,
  LONG1,
  MARK,
  MEMOIZE,
  NONE,
  PROTO,
  PROTOCOL,
  SHORT_BINBYTES,
  STOP,
  TUPLE,
  TUPLE1,
  TUPLE3,
} from "./pickle-opcodes.js";

/**
 * Above this many bytes a pickle may need several frames, and the block goes through the general encoder. Leaves room
 * for the few bytes around tokens and extra keys.
 */
export const SINGLE_FRAME_LIMIT = 60_000;

/** Bytes that one token takes at most in a pickle: ids of 2^31 and above are written as long integers. */
export const MAX_TOKEN_BYTES = 7;

/** Objects that pickle memoises before the extra keys: the parent hash and the token tuple. */
const MEMO_BEFORE_EXTRA_KEYS = 2;

/** The serialised third element of a block. */
export function encodeExtraKeys(format: BlockFormat, extraKeys: Hashable): Uint8Array {
  return format === "cbor" ? cborDumps(extraKeys) : pickleTail(extraKeys, MEMO_BEFORE_EXTRA_KEYS);
}

/**
 * Serialises `(parent, tokens, extra keys)` tuples of one request, reusing one buffer: the hot loop of hashing where
 * no native kernel is at hand.
 */
export class BlockEncoder {
  readonly #format: BlockFormat;
  readonly #writer = new ByteWriter(1024);

  constructor(format: BlockFormat) {
    this.#format = format;
  }

  /**
   * The bytes that are digested for one block: a view that the next call overwrites.
   *
   * @param tokens the request's tokens; the block is `[start, end)`.
   */
  encode(
    parent: Uint8Array,
    tokens: Uint32Array,
    start: number,
    end: number,
    extraKeys: Hashable,
  ): Uint8Array {
    if (this.#format === "cbor") return this.#encodeCbor(parent, tokens, start, end, extraKeys);
    const tail = extraKeys === null ? undefined : encodeExtraKeys("pickle", extraKeys);
    const bound = parent.length + MAX_TOKEN_BYTES * (end - start) + (tail?.length ?? 1) + 64;
    if (bound > SINGLE_FRAME_LIMIT || end === start || parent.length > 0xff || parent.length < 2)
      return pickleDumps([parent, Array.from(tokens.subarray(start, end)), extraKeys]);
    return this.#encodePickle(parent, tokens, start, end, tail);
  }

  #encodePickle(
    parent: Uint8Array,
    tokens: Uint32Array,
    start: number,
    end: number,
    tail: Uint8Array | undefined,
  ): Uint8Array {
    const writer = this.#writer;
    writer.length = 0;
    writer.u8(PROTO);
    writer.u8(PROTOCOL);
    writer.u8(FRAME);
    writer.u64(0n, true);
    const body = writer.length;
    writer.u8(SHORT_BINBYTES);
    writer.u8(parent.length);
    writer.bytes(parent);
    writer.u8(MEMOIZE);
    const count = end - start;
    if (count > 3) writer.u8(MARK);
    for (let i = start; i < end; i++) {
      const token = tokens[i]!;
      if (token <= 0xff) writer.u16((BININT1 << 8) | token, false);
      else if (token <= 0xffff) {
        writer.u8(BININT2);
        writer.u16(token, true);
      } else if (token <= 0x7fff_ffff) {
        writer.u8(BININT);
        writer.u32(token, true);
      } else {
        writer.u16((LONG1 << 8) | 5, false);
        writer.u32(token, true);
        writer.u8(0);
      }
    }
    writer.u8(count > 3 ? TUPLE : TUPLE1 - 1 + count);
    writer.u8(MEMOIZE);
    if (tail === undefined) writer.u8(NONE);
    else writer.bytes(tail);
    writer.u8(TUPLE3);
    writer.u8(MEMOIZE);
    writer.u8(STOP);
    writer.patchU64(body - 8, BigInt(writer.length - body), true);
    return writer.view();
  }

  #encodeCbor(
    parent: Uint8Array,
    tokens: Uint32Array,
    start: number,
    end: number,
    extraKeys: Hashable,
  ): Uint8Array {
    const writer = this.#writer;
    writer.length = 0;
    writer.u8(0x83);
    writer.bytes(cborDumps(parent));
    writeCborHead(writer, 0x80, end - start);
    for (let i = start; i < end; i++) writeCborHead(writer, 0, tokens[i]!);
    if (extraKeys === null) writer.u8(0xf6);
    else writer.bytes(cborDumps(extraKeys));
    return writer.view();
  }
}

function writeCborHead(writer: ByteWriter, major: number, argument: number): void {
  if (argument < 24) writer.u8(major | argument);
  else if (argument <= 0xff) {
    writer.u8(major | 24);
    writer.u8(argument);
  } else if (argument <= 0xffff) {
    writer.u8(major | 25);
    writer.u16(argument, false);
  } else {
    writer.u8(major | 26);
    writer.u32(argument, false);
  }
}
