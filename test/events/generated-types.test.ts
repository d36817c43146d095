import { readFileSync } from "node:fs";
import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { codecs } from "../../generated/typescript/all-releases.js";
import { isMooncakeKvError } from "../../src/errors.js";
import {
  decodeEventBatch,
  EventHashes,
  encodeEventBatch,
  type KVCacheEvent,
  type KVEventBatch,
} from "../../src/events/index.js";
import { RELEASES, type Release } from "../../src/release.js";
import { wireArbitrary } from "../../src/testing/arbitraries/wire-arbitraries.js";
import { check } from "../helpers/property.js";
import { batchOf } from "./arbitraries.js";

// The schemas describe what the handwritten reader and writer read and write: one is checked against the other.

const FORMS = [
  { eventForm: "map", batchForm: "array" },
  { eventForm: "array", batchForm: "array" },
  { eventForm: "map", batchForm: "map" },
] as const;

/** An event as the generated types have it: flat arrays as lists, and only the members of the release. */
function generated(release: Release, event: KVCacheEvent): object {
  const members: Record<string, unknown> = { ...event };
  if ("blockHashes" in event) members["blockHashes"] = [...event.blockHashes];
  if ("tokenIds" in event) members["tokenIds"] = [...event.tokenIds];
  const absent = {
    "vllm-0.27": ["ownership", "sessionId", "lookaheadTokenIds"],
    "vllm-0.31": ["lookaheadTokenIds"],
    "vllm-0.33": [],
  }[release];
  for (const name of absent) delete members[name];
  return members;
}

function generatedBatch(release: Release, { ts, events, dataParallelRank }: KVEventBatch): object {
  return { ts, events: events.map((event) => generated(release, event)), dataParallelRank };
}

/** A value of the generated types as the handwritten ones have it. */
function handwritten(batch: { readonly events: readonly object[] }): KVEventBatch {
  const events = batch.events.map((event) => {
    const members = { ...event } as Record<string, unknown>;
    if ("blockHashes" in event) members["blockHashes"] = EventHashes.from(event.blockHashes as bigint[]);
    if ("tokenIds" in event) members["tokenIds"] = Uint32Array.from(event.tokenIds as number[]);
    return members;
  });
  return { ...batch, events } as unknown as KVEventBatch;
}

for (const release of RELEASES) {
  const codec = codecs[release].KVEventBatch;

  test(`${release}: the generated codec reads what the handwritten writer writes, in every form`, () => {
    check(
      fc.property(batchOf(release), fc.constantFrom(...FORMS), (batch, form) => {
        const bytes = encodeEventBatch(batch, { release, ...form });
        assert.equal(codec.fromMessagePack(bytes), generatedBatch(release, batch));
      }),
      { numRuns: 200 },
    );
  });

  test(`${release}: the handwritten reader reads what the generated codec writes`, () => {
    check(
      fc.property(wireArbitrary(release, "KVEventBatch"), (value) => {
        const { unknownEvents, unknownFields, ...decoded } = decodeEventBatch(
          codec.toMessagePack(value as never),
        );
        assert.equal([unknownEvents, unknownFields], [0, 0]);
        assert.equal(generatedBatch(release, decoded), value);
        assert.equal(
          generatedBatch(release, decodeEventBatch(encodeEventBatch(handwritten(value), { release }))),
          value,
        );
      }),
      { numRuns: 200 },
    );
  });

  test(`${release}: what the generated codec takes of changed bytes, the handwritten reader takes too`, () => {
    check(
      fc.property(
        batchOf(release),
        fc.constantFrom(...FORMS),
        fc.nat(),
        fc.nat(255),
        (batch, form, at, byte) => {
          const bytes = encodeEventBatch(batch, { release, ...form });
          bytes[at % bytes.length] = byte;
          let expected: object;
          try {
            expected = codec.fromMessagePack(bytes);
          } catch (error) {
            if (!isMooncakeKvError(error, "ERR_SCHEMA")) throw error;
            return;
          }
          assert.equal(generatedBatch(release, decodeEventBatch(bytes)), expected);
        },
      ),
      { numRuns: 500 },
    );
  });
}

test("every batch that vLLM encoded is a value of the generated types", () => {
  const url = new URL("../vectors/kv_events.jsonl", import.meta.url);
  const codec = codecs["vllm-0.33"].KVEventBatch;
  let count = 0;
  for (const [hex] of readFileSync(url, "utf8").matchAll(/(?<=")93cb[0-9a-f]+(?=")/g)) {
    const bytes = Uint8Array.from(Buffer.from(hex, "hex"));
    const { unknownEvents: _events, unknownFields: _fields, ...decoded } = decodeEventBatch(bytes);
    const value = codec.fromMessagePack(bytes);
    assert.equal(value, generatedBatch("vllm-0.33", decoded));
    assert.equal(codec.fromJson(JSON.parse(JSON.stringify(codec.toJson(value)))), value);
    count++;
  }
  assert.ok(count > 50, `${count} batches`);
});

test.run();
