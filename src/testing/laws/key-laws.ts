import assert from "node:assert/strict";
import type * as FastCheck from "fast-check";
import { BlobBlockHashes } from "../../hash/blob-block-hashes.js";
import type { KeyMetadata } from "../../key/key-metadata.js";
import { KeyTable } from "../../key/key-table.js";
import { formatParsedKey, type ParsedKey, type ParseKeyOptions, parseKey } from "../../key/parse-key.js";
import { PoolKey } from "../../key/pool-key.js";
import { anyKeyMetadata, chunkHash, keyText, similarPoolKey } from "../arbitraries/key-arbitraries.js";
import fc from "../fast-check.js";

// Laws of keys. Each function takes the implementation under test and returns a fast-check property.

/** What the laws of keys look at. `ownKeys` is this package's. */
export interface KeyImplementation {
  /** The key text of metadata and a hash. */
  format(metadata: KeyMetadata, chunkHash: string): string;
  /** A key text taken apart. @throws an error with the code `ERR_KEY` for a text that is none. */
  parse(key: string, options?: ParseKeyOptions): ParsedKey;
  /** The text again. */
  write(parsed: ParsedKey): string;
  /** The order of keys: negative, 0 or positive. */
  compare(a: PoolKey, b: PoolKey): number;
  /** Whether two keys are equal. */
  equals(a: PoolKey, b: PoolKey): boolean;
  /** A number that is the same for equal keys. */
  stableHash(key: PoolKey): bigint;
}

/** This package's keys. */
export const ownKeys: KeyImplementation = {
  format: (metadata, chunkHash) => new PoolKey(metadata, chunkHash).toString(),
  parse: parseKey,
  write: formatParsedKey,
  compare: PoolKey.compare,
  equals: (a, b) => a.equals(b),
  stableHash: (key) => key.stableHash(),
};

/** A key as the tuple that it stands for: texts as lists of code points. */
function asTuple(key: PoolKey): (readonly number[])[] {
  const { cachePrefix, modelName, storeNamespace, tpRank, pcpRank, dcpRank, ppRank, groupId } =
    key.keyMetadata;
  const points = (text: string) => Array.from(text, (character) => character.codePointAt(0)!);
  return [
    points(cachePrefix),
    points(modelName),
    points(storeNamespace),
    ...[tpRank, pcpRank, dcpRank, ppRank, groupId].map((rank) => [rank]),
    points(key.chunkHash),
  ];
}

function compareLists<T>(a: readonly T[], b: readonly T[], compare: (a: T, b: T) => number): number {
  for (const [index, item] of a.entries()) {
    if (index >= b.length) return 1;
    const order = compare(item, b[index]!);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** The order of keys is that of the tuples, texts by code point. */
export function keyOrderIsTupleOrder(
  keys: KeyImplementation = ownKeys,
): FastCheck.IProperty<[PoolKey, PoolKey]> {
  return fc.property(similarPoolKey(), similarPoolKey(), (a, b) => {
    const expected = compareLists(asTuple(a), asTuple(b), (x, y) => compareLists(x, y, (i, j) => i - j));
    assert.equal(Math.sign(keys.compare(a, b)), Math.sign(expected));
  });
}

/** The order of keys is total: reflexive, antisymmetric, transitive. */
export function keyOrderIsTotal(
  keys: KeyImplementation = ownKeys,
): FastCheck.IProperty<[PoolKey, PoolKey, PoolKey]> {
  return fc.property(similarPoolKey(), similarPoolKey(), similarPoolKey(), (a, b, c) => {
    assert.equal(keys.compare(a, a), 0);
    assert.equal(Math.sign(keys.compare(a, b)), -Math.sign(keys.compare(b, a)) + 0);
    if (keys.compare(a, b) <= 0 && keys.compare(b, c) <= 0) assert.ok(keys.compare(a, c) <= 0);
  });
}

/** Equality, identity, order and stable hash agree on which keys are equal. */
export function keyEqualitiesAgree(
  keys: KeyImplementation = ownKeys,
): FastCheck.IProperty<[PoolKey, PoolKey]> {
  return fc.property(similarPoolKey(), similarPoolKey(), (a, b) => {
    const equal = JSON.stringify(asTuple(a)) === JSON.stringify(asTuple(b));
    assert.equal(keys.equals(a, b), equal);
    assert.equal(a.identity === b.identity, equal);
    assert.equal(keys.stableHash(a) === keys.stableHash(b), equal);
    const copy = new PoolKey({ ...a.keyMetadata }, a.chunkHash);
    assert.ok(
      keys.equals(copy, a) && copy.identity === a.identity && keys.stableHash(copy) === keys.stableHash(a),
    );
  });
}

/** A key text taken apart and put together again is the same text, and its ranks and hash are the key's. */
export function parsingInvertsFormatting(
  keys: KeyImplementation = ownKeys,
): FastCheck.IProperty<[KeyMetadata, string, string | undefined]> {
  const fingerprint = fc.option(fc.constantFrom("0123456789ab", "ffffffffffff"), { nil: undefined });
  return fc.property(anyKeyMetadata(), chunkHash(), fingerprint, (metadata, hash, configFingerprint) => {
    const classic = keys.format(metadata, hash);
    const ranksAt = classic.lastIndexOf("@tp_rank:");
    const config = configFingerprint === undefined ? "" : `@cfg:${configFingerprint}`;
    const key = classic.slice(0, ranksAt) + config + classic.slice(ranksAt);
    const parsed = keys.parse(key);
    assert.equal(keys.write(parsed), key);
    const { tpRank, pcpRank, dcpRank, ppRank, groupId, modelName, cachePrefix, storeNamespace } = metadata;
    assert.deepEqual(
      [parsed.tpRank, parsed.pcpRank, parsed.dcpRank, parsed.ppRank, parsed.groupId, parsed.chunkHash],
      [tpRank, pcpRank, dcpRank, ppRank, groupId, hash],
    );
    if (configFingerprint !== undefined) assert.equal(parsed.configFingerprint, configFingerprint);
    if (parsed.parts === undefined) assert.ok(parsed.candidates.length > 1);
    else assert.deepEqual(parsed.candidates, [parsed.parts]);
    for (const candidate of parsed.candidates) assert.equal(headText(candidate), parsed.head);
    // With the model given, what the key was made of is among the readings wherever its parts meet at an @.
    const looksLikeConfig = configFingerprint === undefined && parsed.configFingerprint !== undefined;
    if (looksLikeConfig || (storeNamespace !== "" && !storeNamespace.startsWith("@"))) return;
    const known = keys.parse(key, { modelName });
    for (const candidate of known.candidates) assert.equal(headText(candidate), known.head);
    assert.ok(
      known.candidates.some(
        (head) => head.cachePrefix === cachePrefix && head.storeNamespace === storeNamespace,
      ),
    );
  });
}

function headText(head: Pick<KeyMetadata, "cachePrefix" | "modelName" | "storeNamespace">): string {
  return `${head.cachePrefix === "" ? "" : `${head.cachePrefix}@`}${head.modelName}${head.storeNamespace}`;
}

/** Whatever is accepted is written back as it was; whatever it refuses, it refuses with its own error. */
export function parsingNeverCrashes(keys: KeyImplementation = ownKeys): FastCheck.IProperty<[string]> {
  const noise = fc.array(fc.oneof(keyText(), chunkHash(), fc.constant("@tp_rank:1@pcp2@dcp3@pp_rank:4")), {
    maxLength: 6,
  });
  return fc.property(
    noise.map((pieces) => pieces.join("")),
    (key) => {
      try {
        assert.equal(keys.write(keys.parse(key)), key);
      } catch (error) {
        assert.equal((error as { code?: string | undefined }).code, "ERR_KEY");
      }
    },
  );
}

/** All keys of a table as one buffer are the keys one by one: hashes outermost, prefixes innermost. */
export function flatKeysAreTheKeys(): FastCheck.IProperty<[string[], Uint8Array, number]> {
  const prefixes = fc.array(keyText(), { maxLength: 3 });
  return fc.property(
    prefixes,
    fc.uint8Array({ maxLength: 100 }),
    fc.integer({ min: 1, max: 32 }),
    (heads, blob, size) => {
      const hashes = new BlobBlockHashes(blob, size);
      const table = KeyTable.fromPrefixes(heads, hashes);
      const expected = hashes
        .toHex()
        .flatMap((hash) => heads.map((head) => PoolKey.buildKeyString(head, hash)));
      assert.deepEqual(table.toArray(), expected);
      assertFlat(table, expected);
      assertFlat(KeyTable.fromTexts(expected), expected);
    },
  );
}

function assertFlat(table: KeyTable, keys: readonly string[]): void {
  const { bytes, offsets } = table.flat();
  assert.equal(offsets.length, keys.length + 1);
  assert.equal(offsets[0], 0);
  assert.equal(offsets.at(-1), bytes.length);
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const texts = keys.map((_, index) => decoder.decode(bytes.subarray(offsets[index]!, offsets[index + 1]!)));
  assert.deepEqual(texts, keys);
}
