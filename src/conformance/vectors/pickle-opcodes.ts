import {
  BINBYTES,
  BINBYTES8,
  BINGET,
  BININT,
  BININT1,
  BININT2,
  BINUNICODE,
  BINUNICODE8,
  EMPTY_TUPLE,
  FRAME,
  LONG_BINGET,
  LONG1,
  LONG4,
  MARK,
  MEMOIZE,
  NONE,
  PROTO,
  SHORT_BINBYTES,
  SHORT_BINUNICODE,
  STOP,
  TUPLE,
  TUPLE1,
  TUPLE2,
  TUPLE3,
} from "../../hash/pickle-opcodes.js";

/** Frames and opcode count of a pickle. */
export interface PickleAnatomy {
  /** Offset of each frame's body and its length. */
  readonly frames: readonly (readonly [number, number])[];
  readonly opcodeCount: number;
}

/** Bytes of the argument after each opcode that a block's pickle can hold. */
const FIXED: Readonly<Record<number, number>> = {
  [PROTO]: 1,
  [FRAME]: 8,
  [NONE]: 0,
  [BININT1]: 1,
  [BININT2]: 2,
  [BININT]: 4,
  [MARK]: 0,
  [EMPTY_TUPLE]: 0,
  [TUPLE1]: 0,
  [TUPLE2]: 0,
  [TUPLE3]: 0,
  [TUPLE]: 0,
  [MEMOIZE]: 0,
  [BINGET]: 1,
  [LONG_BINGET]: 4,
  [STOP]: 0,
};

/** Width of the length in front of the payload of the opcodes that carry one. */
const COUNTED: Readonly<Record<number, number>> = {
  [LONG1]: 1,
  [LONG4]: 4,
  [SHORT_BINBYTES]: 1,
  [BINBYTES]: 4,
  [BINBYTES8]: 8,
  [SHORT_BINUNICODE]: 1,
  [BINUNICODE]: 4,
  [BINUNICODE8]: 8,
};

/** Walks a pickle opcode by opcode, as Python's pickletools does: an independent check of the encoder. */
export function dissectPickle(pickle: Uint8Array): PickleAnatomy {
  const view = new DataView(pickle.buffer, pickle.byteOffset, pickle.length);
  const frames: [number, number][] = [];
  let opcodeCount = 0;
  for (let at = 0; at < pickle.length; opcodeCount++) {
    const opcode = pickle[at++]!;
    const counted = COUNTED[opcode];
    if (counted !== undefined) {
      const length =
        counted === 1
          ? view.getUint8(at)
          : counted === 4
            ? view.getUint32(at, true)
            : Number(view.getBigUint64(at, true));
      at += counted + length;
      continue;
    }
    const width = FIXED[opcode];
    if (width === undefined)
      throw new RangeError(`opcode ${opcode} at ${at - 1} is not one of a block's pickle`);
    if (opcode === FRAME) frames.push([at + 8, Number(view.getBigUint64(at, true))]);
    at += width;
  }
  return { frames, opcodeCount };
}
