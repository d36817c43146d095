import { describe, MooncakeKvError } from "../errors.js";
import type { KeyMetadata } from "./key-metadata.js";

/** How the head of a key may be read. */
export type KeyHead = Pick<KeyMetadata, "cachePrefix" | "modelName" | "storeNamespace">;

/** A key text taken apart from the right. */
export interface ParsedKey {
  /** Everything before the ranks (and before `@cfg:`), verbatim: `[prefix@]model[namespace]`. */
  readonly head: string;
  /**
   * The head taken apart; undefined where it can be read in several ways. Prefix and model may both contain `@`, so
   * that such a head is certain only when the model is given.
   */
  readonly parts: KeyHead | undefined;
  /** Every way to read the head. */
  readonly candidates: readonly KeyHead[];
  /** The 12 hex digits after `@cfg:`, where the key has them. */
  readonly configFingerprint: string | undefined;
  /** Tensor-parallel rank, or store shard. */
  readonly tpRank: number;
  /** Prefill-context-parallel rank. */
  readonly pcpRank: number;
  /** Decode-context-parallel rank. */
  readonly dcpRank: number;
  /** Pipeline-parallel rank. */
  readonly ppRank: number;
  /** Undefined in keys of the connector's first months, which had no group. */
  readonly groupId: number | undefined;
  /** Lower-case hex. */
  readonly chunkHash: string;
}

/** What is known about a key beforehand. */
export interface ParseKeyOptions {
  /** The model segment; makes every head certain. */
  readonly modelName?: string | undefined;
}

const RANKS = /@tp_rank:(-?\d+)@pcp(-?\d+)@dcp(-?\d+)@pp_rank:(-?\d+)(?:@group:(-?\d+))?$/;
const CONFIG = /@cfg:([0-9a-f]{12})$/;
const NAMESPACE = /(?:@store_tp:\d+)?@store_pp:\d+@store_format:[A-Za-z0-9_]+$/;
const SHAPE = "[prefix@]model[namespace][@cfg:hex]@tp_rank:T@pcpP@dcpD@pp_rank:S@group:G@hash";

/**
 * Takes a key text apart. Works from the right, since only the right end has a fixed form; the head is kept verbatim.
 * `formatParsedKey` of the result is the same text again.
 *
 * @example
 * ```ts
 * import { parseKey } from "mooncake-kv";
 *
 * const { tpRank, groupId, parts } = parseKey("Qwen3-8B@tp_rank:1@pcp0@dcp0@pp_rank:0@group:0@a0a0");
 * console.log(tpRank, groupId, parts?.modelName);
 * ```
 *
 * @throws MooncakeKvError `ERR_KEY` for a text that is no key of vLLM's MooncakeStoreConnector, or whose head does
 * not hold the given model.
 */
export function parseKey(key: string, options: ParseKeyOptions = {}): ParsedKey {
  if (typeof key !== "string") throw notAKey(key, "a key is a string");
  // Not the room of checks: a page that only takes keys apart should not pay for it.
  if (options === null || Object.keys(options).some((name) => name !== "modelName"))
    throw new MooncakeKvError("ERR_KEY", `${describe(options)}: the only option is modelName`);
  if (options.modelName === "")
    throw new MooncakeKvError("ERR_KEY", 'modelName "" names no model; leave it out where it is unknown');
  const at = key.lastIndexOf("@");
  const chunkHash = key.slice(at + 1);
  if (at < 0 || !/^(?:[0-9a-f]{2})+$/.test(chunkHash))
    throw notAKey(key, `it must end with @ and the block hash in lower-case hex, not ${describe(chunkHash)}`);
  const ranks = RANKS.exec(key.slice(0, at));
  if (ranks === null) throw notAKey(key, "the ranks before the hash are not of that form");
  const numbers = ranks
    .slice(1)
    .map((digits) => (digits === undefined ? undefined : rankNumber(key, digits)));
  const [tpRank, pcpRank, dcpRank, ppRank, groupId] = numbers;
  const front = key.slice(0, ranks.index);
  const config = CONFIG.exec(front);
  const head = config === null ? front : front.slice(0, config.index);
  if (head === "") throw notAKey(key, "the model is missing");
  const candidates = readHead(head, options.modelName);
  if (candidates.length === 0)
    throw notAKey(
      key,
      `the model ${describe(options.modelName)} does not stand in its head ${describe(head)}`,
    );
  return {
    head,
    parts: candidates.length === 1 ? candidates[0] : undefined,
    candidates,
    configFingerprint: config?.[1],
    tpRank: tpRank!,
    pcpRank: pcpRank!,
    dcpRank: dcpRank!,
    ppRank: ppRank!,
    groupId,
    chunkHash,
  };
}

/** The key text of a parsed key. */
export function formatParsedKey(key: Omit<ParsedKey, "parts" | "candidates">): string {
  const config = key.configFingerprint === undefined ? "" : `@cfg:${key.configFingerprint}`;
  const group = key.groupId === undefined ? "" : `@group:${key.groupId}`;
  return (
    `${key.head}${config}@tp_rank:${key.tpRank}@pcp${key.pcpRank}@dcp${key.dcpRank}` +
    `@pp_rank:${key.ppRank}${group}@${key.chunkHash}`
  );
}

/** All ways to read a head: the namespace has a known form, the border between prefix and model does not. */
function readHead(head: string, modelName: string | undefined): KeyHead[] {
  if (modelName !== undefined) return readHeadOf(head, modelName);
  const namespace = NAMESPACE.exec(head);
  // A head that is nothing but a namespace is a model of that odd name: a key always has a model.
  const storeNamespace = namespace !== null && namespace.index > 0 ? namespace[0] : "";
  const rest = head.slice(0, head.length - storeNamespace.length);
  const heads: KeyHead[] = [{ cachePrefix: "", modelName: rest, storeNamespace }];
  for (let at = rest.indexOf("@"); at >= 0; at = rest.indexOf("@", at + 1))
    if (at > 0 && at < rest.length - 1)
      heads.push({ cachePrefix: rest.slice(0, at), modelName: rest.slice(at + 1), storeNamespace });
  return heads.filter((candidate) => candidate.modelName !== "");
}

function readHeadOf(head: string, modelName: string): KeyHead[] {
  const heads: KeyHead[] = [];
  for (let at = head.indexOf(modelName); at >= 0; at = head.indexOf(modelName, at + 1)) {
    const before = head.slice(0, at);
    const storeNamespace = head.slice(at + modelName.length);
    const prefixed = before === "" || (before.length > 1 && before.endsWith("@"));
    // A namespace of unknown form is possible, but a model name that goes on is likelier: the border must be an @.
    if (prefixed && (storeNamespace === "" || storeNamespace.startsWith("@")))
      heads.push({ cachePrefix: before.slice(0, -1), modelName, storeNamespace });
  }
  return heads;
}

function rankNumber(key: string, digits: string): number {
  const value = Number(digits);
  if (String(value) !== digits || !Number.isSafeInteger(value))
    throw notAKey(key, `the number ${describe(digits)} is not written as vLLM writes it`);
  return value;
}

function notAKey(key: string, reason: string): MooncakeKvError {
  return new MooncakeKvError(
    "ERR_KEY",
    `${describe(key, 120)} is not a key of the form ${SHAPE}: ${reason}`,
    { key },
  );
}
