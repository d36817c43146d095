import type { KeyMetadata } from "../../generated/typescript/index.js";
import { checkNames, type OptionNames } from "../checks/checks-for.js";
import { describe, MooncakeKvError } from "../errors.js";

export type { KeyMetadata };

/** Key metadata as a caller may write it: what has a default in vLLM may be left out. */
export type KeyMetadataInit = Pick<KeyMetadata, "modelName"> & {
  readonly [Name in keyof KeyMetadata]?: KeyMetadata[Name] | undefined;
};

const MEMBERS: OptionNames<KeyMetadata> = {
  modelName: 1,
  tpRank: 1,
  pcpRank: 1,
  dcpRank: 1,
  ppRank: 1,
  groupId: 1,
  cachePrefix: 1,
  storeNamespace: 1,
};

/** The error of this room: `ERR_KEY` with the facts of the message as data. */
export function keyError(message: string, details: Record<string, unknown> = {}): MooncakeKvError {
  return new MooncakeKvError("ERR_KEY", message, details);
}

/**
 * Complete key metadata; ranks and group default to 0, texts to empty.
 *
 * @throws MooncakeKvError `ERR_KEY` for a rank that is not a whole number, or a text that UTF-8 can't carry.
 */
export function keyMetadata(init: KeyMetadataInit): KeyMetadata {
  checkNames(keyError, "key metadata", init, MEMBERS);
  return {
    modelName: text("modelName", init.modelName),
    tpRank: rank("tpRank", init.tpRank ?? 0),
    pcpRank: rank("pcpRank", init.pcpRank ?? 0),
    dcpRank: rank("dcpRank", init.dcpRank ?? 0),
    ppRank: rank("ppRank", init.ppRank ?? 0),
    groupId: rank("groupId", init.groupId ?? 0),
    cachePrefix: text("cachePrefix", init.cachePrefix ?? ""),
    storeNamespace: text("storeNamespace", init.storeNamespace ?? ""),
  };
}

/**
 * Checks one rank or group id. Negative ones are formatted as Python formats them; that no engine has them is for the
 * schema to say. @throws MooncakeKvError `ERR_KEY`.
 */
export function rank(name: string, value: number): number {
  if (!Number.isSafeInteger(value))
    throw new MooncakeKvError("ERR_KEY", `${name} ${describe(value)} is not a whole number below 2^53`, {
      [name]: value,
    });
  return value;
}

/** Checks one text of a key. @throws MooncakeKvError `ERR_KEY`. */
export function text(name: string, value: string): string {
  if (typeof value !== "string" || !value.isWellFormed())
    throw new MooncakeKvError("ERR_KEY", `${name} ${describe(value)} is not a text that UTF-8 can carry`, {
      [name]: value,
    });
  return value;
}
