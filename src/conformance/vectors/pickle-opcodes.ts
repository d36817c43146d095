/** Frames and opcode count of a pickle. */
export interface PickleAnatomy {
  /** Offset of each frame's body and its length. */
  readonly frames: readonly (readonly [number, number])[];
  readonly opcodeCount: number;
}

/** Bytes of the argument after each opcode that a block's pickle can hold. */
const FIXED: Readonly<Record<number, number>> = {
  128: 1, // PROTO
  149: 8, // FRAME
  78: 0, // NONE
  75: 1, // BININT1
  77: 2, // BININT2
  74: 4, // BININT
  40: 0, // MARK
  41: 0, // EMPTY_TUPLE
  133: 0, // TUPLE1
  134: 0, // TUPLE2
  135: 0, // TUPLE3
  116: 0, // TUPLE
  148: 0, // MEMOIZE
  104: 1, // BINGET
  106: 4, // LONG_BINGET
  46: 0, // STOP
};

/** Width of the length in front of the payload of the opcodes that carry one. */
const COUNTED: Readonly<Record<number, number>> = {
  138: 1, // LONG1
  139: 4, // LONG4
  67: 1, // SHORT_BINBYTES
  66: 4, // BINBYTES
  142: 8, // BINBYTES8
  140: 1, // SHORT_BINUNICODE
  88: 4, // BINUNICODE
  141: 8, // BINUNICODE8
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
    if (opcode === 149) frames.push([at + 8, Number(view.getBigUint64(at, true))]);
    at += width;
  }
  return { frames, opcodeCount };
}
