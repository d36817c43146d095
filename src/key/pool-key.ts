import { sha256, toHex, utf8 } from "#platform";
import { checkNames, type OptionNames } from "../checks/checks-for.js";
import { MooncakeKvError } from "../errors.js";
import { type KeyMetadata, type KeyMetadataInit, keyError, keyMetadata, rank, text } from "./key-metadata.js";

/** Ranks that replace those of the metadata in a prefix. 0 is a rank like any other; undefined keeps the own one. */
export interface RankOverrides {
  /** Tensor-parallel rank, or store shard. */
  readonly tpRank?: number | undefined;
  /** Prefill-context-parallel rank. */
  readonly pcpRank?: number | undefined;
  /** Decode-context-parallel rank. */
  readonly dcpRank?: number | undefined;
  /** Pipeline-parallel rank. */
  readonly ppRank?: number | undefined;
}

const RANKS: OptionNames<RankOverrides> = { tpRank: 1, pcpRank: 1, dcpRank: 1, ppRank: 1 };

/** Metadata fields in the order in which keys sort. */
const FIELDS = [
  "cachePrefix",
  "modelName",
  "storeNamespace",
  "tpRank",
  "pcpRank",
  "dcpRank",
  "ppRank",
  "groupId",
] as const;

/**
 * The key of one block in the store. Mirrors vLLM's `PoolKey`.
 *
 * @example
 * ```ts
 * import { PoolKey } from "mooncake-kv";
 *
 * const key = new PoolKey({ modelName: "Qwen3-8B", tpRank: 1 }, "a0".repeat(32));
 * console.log(key.toString()); // Qwen3-8B@tp_rank:1@pcp0@dcp0@pp_rank:0@group:0@a0a0...
 * ```
 */
export class PoolKey {
  /** All of the key but the hash. */
  readonly keyMetadata: KeyMetadata;
  /** The block hash as the text that ends the key: lower-case hex. */
  readonly chunkHash: string;

  /** @throws MooncakeKvError `ERR_KEY` for metadata or a hash that no key can carry. */
  constructor(metadata: KeyMetadataInit, chunkHash: string | Uint8Array) {
    this.keyMetadata = keyMetadata(metadata);
    this.chunkHash = hashText(chunkHash);
  }

  /**
   * The part of a key before its hash: the same for all blocks of one rank and group. Mirrors
   * `PoolKey.build_prefix`.
   *
   * @throws MooncakeKvError `ERR_KEY` for metadata or ranks that no key can carry.
   */
  static buildPrefix(metadata: KeyMetadataInit, overrides: RankOverrides = {}): string {
    const own = keyMetadata(metadata);
    checkNames(keyError, "the ranks of a prefix", overrides, RANKS);
    const head = own.cachePrefix === "" ? "" : `${own.cachePrefix}@`;
    const tpRank = rank("tpRank", overrides.tpRank ?? own.tpRank);
    const pcpRank = rank("pcpRank", overrides.pcpRank ?? own.pcpRank);
    const dcpRank = rank("dcpRank", overrides.dcpRank ?? own.dcpRank);
    const ppRank = rank("ppRank", overrides.ppRank ?? own.ppRank);
    return (
      `${head}${own.modelName}${own.storeNamespace}` +
      `@tp_rank:${tpRank}@pcp${pcpRank}@dcp${dcpRank}@pp_rank:${ppRank}@group:${own.groupId}`
    );
  }

  /**
   * A key from its prefix and its hash. Mirrors `PoolKey.build_key_string`.
   *
   * @throws MooncakeKvError `ERR_KEY` for a prefix or a hash that no key can carry.
   */
  static buildKeyString(keyPrefix: string, chunkHash: string | Uint8Array): string {
    return `${text("keyPrefix", keyPrefix)}@${hashText(chunkHash)}`;
  }

  /**
   * A total order: by metadata (prefix, model, namespace, ranks, group), then by hash; texts by code point. Between
   * keys of equal metadata it is Python's order.
   */
  static compare(a: PoolKey, b: PoolKey): number {
    for (const field of FIELDS) {
      const left = a.keyMetadata[field];
      const right = b.keyMetadata[field];
      const order =
        typeof left === "number" ? left - (right as number) : compareCodePoints(left, right as string);
      if (order !== 0) return order;
    }
    return compareCodePoints(a.chunkHash, b.chunkHash);
  }

  /**
   * The order that Python defines: by hash, between keys of equal metadata only.
   *
   * @throws MooncakeKvError `ERR_KEY` when the metadata differ, where Python raises TypeError.
   */
  static compareHashes(a: PoolKey, b: PoolKey): number {
    const differing = FIELDS.find((field) => a.keyMetadata[field] !== b.keyMetadata[field]);
    if (differing !== undefined)
      throw new MooncakeKvError(
        "ERR_KEY",
        `keys of different metadata have no order in vLLM: ${differing} is ` +
          `${JSON.stringify(a.keyMetadata[differing])} and ${JSON.stringify(b.keyMetadata[differing])}`,
        { field: differing },
      );
    return compareCodePoints(a.chunkHash, b.chunkHash);
  }

  /** Whether both have the same metadata and hash. */
  equals(other: PoolKey): boolean {
    return PoolKey.compare(this, other) === 0;
  }

  /** A text that is equal exactly for equal keys: for maps and sets. Unlike `toString` it can't be ambiguous. */
  get identity(): string {
    return JSON.stringify([...FIELDS.map((field) => this.keyMetadata[field]), this.chunkHash]);
  }

  /** A 64-bit hash that is the same in every process. Equal keys have equal hashes. */
  stableHash(): bigint {
    const { buffer, byteOffset } = sha256(utf8(this.identity));
    return new DataView(buffer, byteOffset).getBigUint64(0);
  }

  /** The key text, as it stands in the store. Mirrors `PoolKey.to_string`. */
  toString(): string {
    return PoolKey.buildKeyString(PoolKey.buildPrefix(this.keyMetadata), this.chunkHash);
  }
}

function hashText(chunkHash: string | Uint8Array): string {
  return text("chunkHash", chunkHash instanceof Uint8Array ? toHex(chunkHash) : chunkHash);
}

/** Compares texts by code point, as Python does; JavaScript's own order differs above U+FFFF. */
export function compareCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left !== right) return surrogatesLast(left) - surrogatesLast(right);
  }
  return a.length - b.length;
}

/** Moves surrogates, which stand for code points above U+FFFF, behind the other UTF-16 units. */
function surrogatesLast(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
