import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import { BlobBlockHashes } from "../../src/hash/index.js";
import {
  encodeLookupRequest,
  encodeResetRequest,
  LOOKUP_FRAME_FORMS,
  LOOKUP_MSG,
  type ParsedRequest,
  parseRequest,
} from "../../src/lookup/index.js";
import { check } from "../helpers/property.js";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const bytes = (text: string) => Uint8Array.from(Buffer.from(text, "hex"));

/** A request with its hashes as hex, so that it can be compared. */
function shown(request: ParsedRequest): unknown {
  if (request.kind !== "lookup") return request;
  const { blockHashes, ...rest } = request;
  return { ...rest, hashes: Array.from({ length: blockHashes.length }, (_, i) => hex(blockHashes.at(i)!)) };
}

test("the three forms of a question, byte by byte", () => {
  const question = { numTokens: 48, blockHashes: [bytes("6130"), bytes("6131")] };
  assert.equal(encodeLookupRequest(question).map(hex), ["6c6f6f6b7570", "00000030", "0002", "61306131"]);
  assert.equal(encodeLookupRequest(question, "middle").map(hex), [
    "6c6f6f6b7570",
    "00000030",
    "92a436313330a436313331",
  ]);
  assert.equal(encodeLookupRequest(question, "first").map(hex), ["00000030", "92a436313330a436313331"]);
});

test("what is encoded is read back, in every form", () => {
  check(
    fc.property(
      fc.nat(2 ** 32 - 1),
      fc.integer({ min: 1, max: 40 }),
      fc.nat(20),
      fc.infiniteStream(fc.nat(255)),
      fc.constantFrom(...LOOKUP_FRAME_FORMS),
      (numTokens, length, count, stream, form) => {
        const blob = Uint8Array.from(stream.take(length * count));
        const blockHashes = new BlobBlockHashes(blob, length);
        const read = parseRequest(encodeLookupRequest({ numTokens, blockHashes }, form));
        assert.equal(shown(read), { kind: "lookup", form, numTokens, hashes: blockHashes.toHex() });
      },
    ),
    { numRuns: 200 },
  );
});

test("the current form shares the memory of the hashes", () => {
  const blob = new Uint8Array(64);
  const frames = encodeLookupRequest({ numTokens: 1, blockHashes: new BlobBlockHashes(blob, 32) });
  assert.is(frames[3]!.buffer, blob.buffer);
});

test("the older MessagePack list may lie in several frames", () => {
  const [tag, tokens, list] = encodeLookupRequest(
    { numTokens: 32, blockHashes: [new Uint8Array(32).fill(7), new Uint8Array(32).fill(8)] },
    "middle",
  ) as [Uint8Array, Uint8Array, Uint8Array];
  const expected = shown(parseRequest([tag, tokens, list]));
  const pieces = [list.subarray(0, 20), list.subarray(20, 21), list.subarray(21)];
  assert.equal(shown(parseRequest([tag, tokens, ...pieces])), expected);
  assert.equal(shown(parseRequest([tokens, ...pieces])), { ...(expected as object), form: "first" });
});

test("an integer has as many bytes as its frame, and later frames are ignored", () => {
  const expected = { kind: "lookup", form: "current", numTokens: 48, hashes: ["6130"] };
  for (const frames of [
    ["30", "02", "6130"],
    ["0000000030", "000002", "6130ff"],
    ["00000030", "0002", "6130", "01"],
  ])
    assert.equal(shown(parseRequest([LOOKUP_MSG, ...frames.map(bytes)])), expected);
});

test("what can't be read is told apart: reset, unknown, malformed", () => {
  const kinds: readonly [readonly string[], ParsedRequest["kind"]][] = [
    [["7265736574"], "reset"],
    [["7265736574", "00"], "reset"],
    [[], "unknown"],
    [[""], "unknown"],
    [["5245534554"], "unknown"],
    [["00000030"], "unknown"],
    [["00000030", "c0"], "unknown"],
    [["00000030", "91a27a7a"], "malformed"],
    [["0000003030", "91a23030"], "unknown"],
    [["6c6f6f6b7570"], "malformed"],
    [["6c6f6f6b7570", "00000030"], "malformed"],
    [["6c6f6f6b7570", "00000030", "0002"], "malformed"],
    [["6c6f6f6b7570", "ffffffffffffffff", "0002", "6130"], "malformed"],
    [["6c6f6f6b7570", "00000030", "ffffffffffffffff", "6130"], "malformed"],
  ];
  for (const [frames, kind] of kinds)
    assert.is(parseRequest(frames.map(bytes)).kind, kind, JSON.stringify(frames));
  assert.equal(encodeResetRequest().map(hex), ["7265736574"]);
});

test("any frames at all are read as something", () => {
  const frame = fc.oneof(
    fc.uint8Array({ maxLength: 12 }),
    fc.constantFrom(
      LOOKUP_MSG,
      bytes("7265736574"),
      bytes("00000030"),
      bytes("91a24142"),
      bytes("dd7fffffff"),
    ),
  );
  check(
    fc.property(fc.array(frame, { maxLength: 6 }), (frames) => {
      const request = parseRequest(frames);
      assert.ok(["lookup", "reset", "unknown", "malformed"].includes(request.kind));
      if (request.kind === "lookup") assert.ok(Number.isSafeInteger(request.numTokens));
    }),
  );
});

test("numbers without room in the frames, and hashes that are none, are refused", () => {
  for (const [numTokens, hashes] of [
    [2 ** 32, [bytes("aa")]],
    [-1, []],
    [1.5, []],
    [1, [new Uint8Array(65_536)]],
    [1, ["aa" as unknown as Uint8Array]],
  ] as const)
    assert.throws(
      () => encodeLookupRequest({ numTokens, blockHashes: hashes }),
      (error: unknown) => isMooncakeKvError(error),
    );
});

test.run();
