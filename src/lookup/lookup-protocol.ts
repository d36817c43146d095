import type { TailKeyBoundary } from "../../generated/typescript/index.js";
import { lookupReplyCodec as reply027 } from "../../generated/typescript/vllm-0.27/lookup-codecs.js";
import { lookupReplyCodec as reply031 } from "../../generated/typescript/vllm-0.31/lookup-codecs.js";
import { lookupReplyCodec as reply033 } from "../../generated/typescript/vllm-0.33/lookup-codecs.js";
import { DEFAULT_RELEASE, type Release } from "../release.js";
import { lookupError } from "./errors.js";

/** First frame of a question. */
export const LOOKUP_MSG: Uint8Array = ascii("lookup");
/** First frame of the demand to empty the store. */
export const RESET_MSG: Uint8Array = ascii("reset");
/** The store is empty now. */
export const RESP_OK: Uint8Array = Uint8Array.of(1);
/** The store could not be emptied, or the request is not known. */
export const RESP_ERR: Uint8Array = Uint8Array.of(0);
/** Bytes of one tail key boundary in a reply: two 32-bit integers. */
export const TAIL_KEY_BOUNDARY_ENTRY_SIZE = 8;

/** What a lookup found. Mirrors vLLM's `MooncakeLookupResult`. */
export interface MooncakeLookupResult {
  /** Tokens of the longest prefix that every group can load; 0 is a miss. */
  readonly hitLength: number;
  /** One a group, unless the hit is 0 or the release knows none. */
  readonly tailKeyBoundaries: readonly TailKeyBoundary[];
}

/** Nothing is stored. */
export const MISS: MooncakeLookupResult = { hitLength: 0, tailKeyBoundaries: [] };

const REPLY_CODECS = {
  // The reply of 0.27 is the length alone; an engine of that release would read boundaries as a part of it.
  "vllm-0.27": {
    toBinary: ({ hitLength }: MooncakeLookupResult): Uint8Array => reply027.toBinary({ hitLength }),
    fromBinary: (reply: Uint8Array): MooncakeLookupResult => ({
      ...reply027.fromBinary(reply),
      tailKeyBoundaries: [],
    }),
  },
  "vllm-0.31": reply031,
  "vllm-0.33": reply033,
} as const satisfies Record<Release, unknown>;

/**
 * The answer to a question. Mirrors vLLM's `encode_lookup_response`.
 *
 * @throws MooncakeKvError `ERR_SCHEMA` for numbers that do not fit 4 bytes.
 */
export function encodeLookupResponse(
  result: MooncakeLookupResult,
  release: Release = DEFAULT_RELEASE,
): Uint8Array {
  return REPLY_CODECS[release].toBinary(result);
}

/**
 * What an answer says. Mirrors vLLM's `decode_lookup_response`.
 *
 * @throws MooncakeKvError `ERR_LOOKUP` for a status byte, which is no count; `ERR_SCHEMA` for a reply of another length.
 */
export function decodeLookupResponse(
  reply: Uint8Array,
  release: Release = DEFAULT_RELEASE,
): MooncakeLookupResult {
  if (reply.length === 1)
    throw lookupError(
      `the reply is the status ${reply[0]}, not a number of tokens: the engine does not know this form of the question`,
      { status: reply[0], release },
    );
  return REPLY_CODECS[release].fromBinary(reply);
}

function ascii(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
