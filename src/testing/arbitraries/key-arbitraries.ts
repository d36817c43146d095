import type * as FastCheck from "fast-check";
import type { KeyMetadata } from "../../key/key-metadata.js";
import { PoolKey } from "../../key/pool-key.js";
import fc from "../fast-check.js";
import { wellFormedText } from "./hash-arbitraries.js";

/** Texts that are likely inside keys, separators and look-alikes of key parts among them. */
export function keyText(): FastCheck.Arbitrary<string> {
  const piece = fc.constantFrom(
    "@",
    "a",
    "m",
    "Qwen3",
    "@v2",
    "%",
    "-SEP-",
    "@pcp0",
    "@group:1",
    "@tp_rank:0",
    "@cfg:0123456789ab",
    "@store_pp:1@store_format:x",
    "\u{1f600}",
    "\uffff",
  );
  return fc.oneof(
    fc.array(piece, { maxLength: 4 }).map((pieces) => pieces.join("")),
    wellFormedText(),
  );
}

/** Lower-case hex of whole bytes, as a block hash stands in a key. */
export function chunkHash(): FastCheck.Arbitrary<string> {
  return fc.uint8Array({ minLength: 1, maxLength: 32 }).map((hash) => Buffer.from(hash).toString("hex"));
}

/** Complete key metadata; any text may be any text, the model is never empty. */
export function anyKeyMetadata(): FastCheck.Arbitrary<KeyMetadata> {
  const rank = fc.oneof(fc.nat(12), fc.maxSafeNat());
  return fc.record({
    modelName: keyText().filter((name) => name !== ""),
    tpRank: rank,
    pcpRank: rank,
    dcpRank: rank,
    ppRank: rank,
    groupId: rank,
    cachePrefix: keyText(),
    storeNamespace: keyText(),
  });
}

/** Keys that often agree in most of their parts, so that every part decides an order now and then. */
export function similarPoolKey(): FastCheck.Arbitrary<PoolKey> {
  const rank = fc.integer({ min: -1, max: 11 });
  const text = fc.constantFrom("", "a", "b", "a@b", "\uffff", "\u{10000}");
  return fc
    .record({
      modelName: text,
      tpRank: fc.constantFrom(0, 2, 10),
      pcpRank: fc.constantFrom(0, 1),
      dcpRank: fc.constantFrom(0, 1),
      ppRank: fc.constantFrom(0, 1),
      groupId: rank,
      cachePrefix: text,
      storeNamespace: fc.constantFrom("", "@x"),
      hash: fc.constantFrom("00", "ff", "0a", "\uffff", "\u{10000}"),
    })
    .map(({ hash, ...metadata }) => new PoolKey(metadata, hash));
}
