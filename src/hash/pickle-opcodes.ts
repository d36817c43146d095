// The opcodes of Python's pickle, protocol 5, that a block's pickle can hold, by the names of CPython's `pickle` module.

/** The protocol that vLLM asks for: the highest. */
export const PROTOCOL = 5;

/** Starts the elements of a long tuple. */
export const MARK = 0x28;
/** A tuple of none. */
export const EMPTY_TUPLE = 0x29;
/** The end of a pickle. */
export const STOP = 0x2e;
/** Bytes, their length in 32 bits. */
export const BINBYTES = 0x42;
/** Bytes, their length in 8 bits. */
export const SHORT_BINBYTES = 0x43;
/** An integer of 32 bits with sign. */
export const BININT = 0x4a;
/** An integer of 8 bits. */
export const BININT1 = 0x4b;
/** An integer of 16 bits. */
export const BININT2 = 0x4d;
/** None. */
export const NONE = 0x4e;
/** Text, its length in 32 bits. */
export const BINUNICODE = 0x58;
/** What was memoised, by an index of 8 bits. */
export const BINGET = 0x68;
/** What was memoised, by an index of 32 bits. */
export const LONG_BINGET = 0x6a;
/** A tuple of what stands behind the mark. */
export const TUPLE = 0x74;
/** The protocol, of which the number follows. */
export const PROTO = 0x80;
/** A tuple of one. */
export const TUPLE1 = 0x85;
/** A tuple of two. */
export const TUPLE2 = 0x86;
/** A tuple of three. */
export const TUPLE3 = 0x87;
/** An integer of any size, the number of its bytes in 8 bits. */
export const LONG1 = 0x8a;
/** An integer of any size, the number of its bytes in 32 bits. */
export const LONG4 = 0x8b;
/** Text, its length in 8 bits. */
export const SHORT_BINUNICODE = 0x8c;
/** Text, its length in 64 bits. */
export const BINUNICODE8 = 0x8d;
/** Bytes, their length in 64 bits. */
export const BINBYTES8 = 0x8e;
/** Gives the last object the next index of the memo. */
export const MEMOIZE = 0x94;
/** A frame, of which the length follows in 64 bits. */
export const FRAME = 0x95;
