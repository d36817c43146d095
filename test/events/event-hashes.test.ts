import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { idWords } from "../../src/events/event-hashes.js";
import { blockHashId, EventHashes } from "../../src/events/index.js";
import { BlobBlockHashes, toExternalBlockHash } from "../../src/hash/index.js";
import { check } from "../helpers/property.js";
import { externalHash } from "./arbitraries.js";

test("the id of a hash is what the engine would publish as an integer", () => {
  check(
    fc.property(fc.uint8Array({ maxLength: 40 }), (hash) => {
      assert.is(blockHashId(hash), toExternalBlockHash(hash));
      assert.is(EventHashes.from([hash]).ids[0], toExternalBlockHash(hash));
    }),
  );
});

test("hashes come out as they went in", () => {
  check(
    fc.property(fc.array(externalHash), (list) => {
      const hashes = EventHashes.from(list);
      assert.equal([...hashes], list);
      assert.equal([...hashes.ids], list.map(blockHashId));
      assert.equal(
        [hashes.at(-1), hashes.at(list.length), hashes.at(0.5)],
        [undefined, undefined, undefined],
      );
      // Words at an odd place in memory, where no 64-bit view is possible.
      const shifted = new Uint32Array(2 * list.length + 1).subarray(1);
      shifted.set(hashes.words);
      assert.equal([...new EventHashes(shifted).ids], [...hashes.ids]);
    }),
  );
});

test("a prompt's hashes have the same words in every form", () => {
  check(
    fc.property(
      fc.integer({ min: 1, max: 33 }),
      fc.nat(9),
      fc.infiniteStream(fc.nat(255)),
      (length, count, bytes) => {
        const blob = new BlobBlockHashes(Uint8Array.from(bytes.take(length * count)), length);
        const events = EventHashes.from(blob);
        assert.equal(idWords(blob), events.words);
        assert.equal(idWords(events), events.words);
        assert.equal(idWords(BigUint64Array.from(blob, (hash) => blockHashId(hash))), events.words);
      },
    ),
  );
});

test.run();
