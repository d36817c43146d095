/** How much of an answer is believed: beyond that it is refused, whoever sends it. */
export interface AnswerLimit {
  readonly bytes: number;
  readonly values: number;
}

/** What an answer has besides what was asked for. */
const FRAME: AnswerLimit = { bytes: 4 << 10, values: 64 };

/** What one key's replicas take: some 50 of them, where a replica has at most 350 bytes and 5 values. */
const REPLICAS: AnswerLimit = { bytes: 16 << 10, values: 256 };

/** A byte of a key is `\u0001` in JSON. The key itself is there, and the path of its file may contain it. */
const ESCAPED = 6;
const TIMES_NAMED = 4;

/** The answer to a question about `keys` keys that have `keyBytes` bytes together. */
export function keysLimit(keys: number, keyBytes: number): AnswerLimit {
  return {
    bytes: FRAME.bytes + keys * REPLICAS.bytes + keyBytes * ESCAPED * TIMES_NAMED,
    values: FRAME.values + keys * REPLICAS.values,
  };
}

/** The answer of `/health`. */
export const HEALTH_LIMIT: AnswerLimit = FRAME;

/** The answer of `/get_segments_detail`: some 5,000 segments, which have 13 values and 450 bytes each. */
export const SEGMENTS_LIMIT: AnswerLimit = { bytes: 4 << 20, values: 1 << 16 };

/** All bytes of `/metrics`, which has two lines a segment; they are read as they come, and not kept. */
export const METRICS_BYTES: number = 4 << 20;

/** The segment descriptor of an owner, which names every buffer of it; the bytes are Mooncake's own limit. */
export const DESCRIPTOR_LIMIT: AnswerLimit = { bytes: 1 << 20, values: 1 << 14 };

/** A line of `/get_all_keys`; keys of 1 MiB were seen to work. */
export const LONGEST_KEY: number = 16 << 20;
