import { Decoder, Encoder } from "@msgpack/msgpack";
import { lookupRequestCodec } from "../../generated/typescript/index.js";
import { scanMessagePack } from "../../generated/typescript/runtime/message-pack-scan.js";
import { describe, isMooncakeKvError } from "../errors.js";
import { BlobBlockHashes, type BlockHashSequence } from "../hash/blob-block-hashes.js";
import { lookupError } from "./errors.js";
import { LOOKUP_MSG, RESET_MSG } from "./lookup-protocol.js";

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

/**
 * What the frames of a request mean, whichever form they have. As loose as vLLM's own reader: an integer has as many
 * bytes as its frame, and what follows the last known frame is ignored. Never throws.
 */
export function parseRequest(frames: readonly Uint8Array[]): ParsedRequest {
  const [first = new Uint8Array(0)] = frames;
  if (equal(first, RESET_MSG)) return { kind: "reset" };
  if (!equal(first, LOOKUP_MSG)) return firstForm(frames) ?? { kind: "unknown" };
  const numTokens = bigEndian(frames[1]);
  if (numTokens === undefined)
    return malformed(
      frames[1] ? `${describe(frames[1])} is no number of tokens` : "the question has no frames",
    );
  const middle = packedHashes(frames.slice(2));
  if (middle !== undefined) return { kind: "lookup", form: "middle", numTokens, blockHashes: middle };
  if (frames.length < 4) return malformed(`a question has 4 frames, this one has ${frames.length}`);
  const hashLen = bigEndian(frames[2]);
  if (hashLen === undefined) return malformed(`${describe(frames[2])} is no length of a hash`);
  return {
    kind: "lookup",
    form: "current",
    numTokens,
    blockHashes: new BlobBlockHashes(frames[3]!, hashLen),
  };
}

function firstForm(frames: readonly Uint8Array[]): ParsedRequest | undefined {
  if (frames[0]?.length !== 4) return undefined;
  const blockHashes = packedHashes(frames.slice(1));
  const numTokens = bigEndian(frames[0]);
  return blockHashes && numTokens !== undefined
    ? { kind: "lookup", form: "first", numTokens, blockHashes }
    : undefined;
}

function malformed(problem: string): ParsedRequest {
  return { kind: "malformed", problem };
}

/** The list of hex hashes that frames hold together; undefined when they hold something else. */
function packedHashes(frames: readonly Uint8Array[]): BlockHashSequence | undefined {
  const head = frames[0]?.[0];
  if (head === undefined || !((head >= 0x90 && head <= 0x9f) || head === 0xdc || head === 0xdd))
    return undefined;
  const bytes = frames.length === 1 ? frames[0]! : concatenated(frames);
  if (scanMessagePack(bytes) !== undefined) return undefined;
  const list = new Decoder().decode(bytes);
  if (!Array.isArray(list)) return undefined;
  const hashes: Uint8Array[] = [];
  for (const text of list as unknown[]) {
    if (typeof text !== "string" || text.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(text)) return undefined;
    hashes.push(Uint8Array.from(Buffer.from(text, "hex")));
  }
  return hashes;
}

/** The whole frame as one number; undefined without a frame, and above 2^53 - 1. */
function bigEndian(frame: Uint8Array | undefined): number | undefined {
  if (frame === undefined) return undefined;
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
