import { Encoder } from "@msgpack/msgpack";
import { lookupRequestCodec } from "../../generated/typescript/index.js";
import { describe, isMooncakeKvError } from "../errors.js";
import { BlobBlockHashes, type BlockHashSequence } from "../hash/blob-block-hashes.js";
import { lookupError } from "./errors.js";
import { LOOKUP_MSG, RESET_MSG } from "./lookup-protocol.js";
import { MAX_LOOKUP_HASHES, startsList, unpackHashes } from "./packed-hashes.js";

/**
 * The forms that a question has had:
 *
 * | form | frames |
 * |---|---|
 * | `current` | `lookup`, tokens, length of a hash, all hashes; every release that this package speaks |
 * | `middle` | `lookup`, tokens, a MessagePack list of hex hashes; since there is `reset` |
 * | `first` | tokens, a MessagePack list of hex hashes |
 */
export type LookupFrameForm = "current" | "middle" | "first";

/** All forms, newest first. */
export const LOOKUP_FRAME_FORMS: readonly LookupFrameForm[] = ["current", "middle", "first"];

/** A question. */
export interface LookupQuestion {
  /** Tokens of the prompt; in the older forms already aligned by the one who asks. */
  readonly numTokens: number;
  readonly blockHashes: BlockHashSequence;
}

/** What the frames of a request mean. */
export type ParsedRequest =
  | ({ readonly kind: "lookup"; readonly form: LookupFrameForm } & LookupQuestion)
  | { readonly kind: "reset" }
  /** A request of a kind that nobody defined. */
  | { readonly kind: "unknown" }
  /** A question that can't be read. */
  | { readonly kind: "malformed"; readonly problem: string };

/**
 * The frames of a question. As in vLLM, the first hash tells the length of all.
 *
 * @throws MooncakeKvError `ERR_SCHEMA` or `ERR_LOOKUP` for numbers that the frames have no room for.
 */
export function encodeLookupRequest(
  { numTokens, blockHashes }: LookupQuestion,
  form: LookupFrameForm = "current",
): Uint8Array[] {
  const [tag, tokens, hashLen, hashes] = lookupRequestCodec.toBinary({
    numTokens,
    hashLen: form === "current" ? (blockHashes.at(0)?.length ?? 0) : 0,
    blockHashes: form === "current" ? joined(blockHashes) : new Uint8Array(0),
  }) as [Uint8Array, Uint8Array, Uint8Array, Uint8Array];
  if (form === "current") return [tag, tokens, hashLen, hashes];
  const packed = new Encoder().encode(Array.from(each(blockHashes), hexOf));
  return form === "middle" ? [tag, tokens, packed] : [tokens, packed];
}

/** The frame of a demand to empty the store. */
export function encodeResetRequest(): Uint8Array[] {
  return [RESET_MSG];
}

/** Whether frames demand that the store be emptied. */
export function isReset([first]: readonly Uint8Array[]): boolean {
  return first !== undefined && equal(first, RESET_MSG);
}

/** Frames of one request at most. A question has 4; what follows is ignored, or continues the list of an older form. */
const MAX_FRAMES = 64;
/** Bytes of an integer at most; it needs 4. */
const MAX_INTEGER_BYTES = 16;

/**
 * What the frames of a request mean, whichever form they have. As loose as vLLM's own reader: an integer has as many
 * bytes as its frame, and what follows the last known frame is ignored. Time and memory are bounded by the size of the
 * frames, and a question has at most `MAX_LOOKUP_HASHES` hashes. Never throws.
 */
export function parseRequest(frames: readonly Uint8Array[]): ParsedRequest {
  const [first = new Uint8Array(0)] = frames;
  if (frames.length > MAX_FRAMES)
    return malformed(`the request has ${frames.length} frames; ${MAX_FRAMES} are allowed`);
  if (isReset(frames)) return { kind: "reset" };
  if (!equal(first, LOOKUP_MSG))
    return first.length === 4 && startsList(frames[1])
      ? olderForm("first", first, frames.slice(1))
      : { kind: "unknown" };
  if (frames[1] === undefined) return malformed("a question has 4 frames, this one has 1");
  if (startsList(frames[2])) {
    const middle = olderForm("middle", frames[1], frames.slice(2));
    // The length of a hash may begin as a list does.
    if (middle.kind === "lookup" || frames.length < 4) return middle;
  }
  return currentForm(frames);
}

function currentForm(frames: readonly Uint8Array[]): ParsedRequest {
  const numTokens = bigEndian(frames[1]);
  if (numTokens === undefined) return malformed(`${describe(frames[1])} is no number of tokens`);
  if (frames.length < 4) return malformed(`a question has 4 frames, this one has ${frames.length}`);
  const hashLen = bigEndian(frames[2]);
  if (hashLen === undefined) return malformed(`${describe(frames[2])} is no length of a hash`);
  const blockHashes = new BlobBlockHashes(frames[3]!, hashLen);
  if (blockHashes.length > MAX_LOOKUP_HASHES)
    return malformed(
      `${blockHashes.length} hashes of ${hashLen} bytes; a question has at most ${MAX_LOOKUP_HASHES}`,
    );
  return { kind: "lookup", form: "current", numTokens, blockHashes };
}

/** A question whose hashes are a list, in one frame or several. */
function olderForm(form: "middle" | "first", tokens: Uint8Array, list: readonly Uint8Array[]): ParsedRequest {
  const numTokens = bigEndian(tokens);
  if (numTokens === undefined) return malformed(`${describe(tokens)} is no number of tokens`);
  const blockHashes = unpackHashes(list.length === 1 ? list[0]! : concatenated(list));
  if (typeof blockHashes === "string") return malformed(blockHashes);
  return { kind: "lookup", form, numTokens, blockHashes };
}

function malformed(problem: string): ParsedRequest {
  return { kind: "malformed", problem };
}

/** The whole frame as one number; undefined without a frame, for one of many bytes, and above 2^53 - 1. */
function bigEndian(frame: Uint8Array | undefined): number | undefined {
  if (frame === undefined || frame.length > MAX_INTEGER_BYTES) return undefined;
  let value = 0;
  for (const byte of frame) {
    value = value * 256 + byte;
    if (!Number.isSafeInteger(value)) return undefined;
  }
  return value;
}

/** All hashes back to back; no copy where they lie so already. */
function joined(hashes: BlockHashSequence): Uint8Array {
  if (hashes instanceof BlobBlockHashes) return hashes.blob.subarray(0, hashes.length * hashes.hashLength);
  return concatenated([...each(hashes)]);
}

function* each(hashes: BlockHashSequence): Iterable<Uint8Array> {
  for (let index = 0; index < hashes.length; index++) {
    const hash = hashes.at(index);
    if (!(hash instanceof Uint8Array))
      throw lookupError(`block hash ${index} is ${describe(hash)}; a block hash is a Uint8Array`, { index });
    yield hash;
  }
}

function concatenated(pieces: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let offset = 0;
  for (const piece of pieces) {
    whole.set(piece, offset);
    offset += piece.length;
  }
  return whole;
}

function hexOf(hash: Uint8Array): string {
  return Buffer.from(hash.buffer, hash.byteOffset, hash.byteLength).toString("hex");
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

/** The message of a thrown value, for counters and logs. */
export function messageOf(error: unknown): string {
  return isMooncakeKvError(error) ? error.message : error instanceof Error ? error.message : describe(error);
}
