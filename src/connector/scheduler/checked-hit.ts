import type { MooncakeLookupResult } from "../../../generated/typescript/index.js";
import { describe } from "../../errors.js";
import { requestError } from "../../request/checks.js";
import { createLookupResult, TailKeyBoundary } from "../../request/tail-key-boundary.js";
import type { ConnectorSettings } from "../connector-config.js";
import type { StoreRequest } from "./store-request.js";

/**
 * What a lookup says of a request, where it can be so: a hit ends at or before the end of the prompt, at a multiple of
 * the step of all hits, and where the request has a hash; a tail block is one of a group that there is, at most one a
 * group, and is stored under a hash from the end of the hit to the end of its block. Under any other hash it would hold
 * other tokens.
 *
 * @throws MooncakeKvError `ERR_REQUEST` for anything else.
 */
export function checkedHit(
  settings: ConnectorSettings,
  request: Pick<StoreRequest, "requestId" | "numTokens" | "blockHashes">,
  answer: MooncakeLookupResult,
): MooncakeLookupResult {
  const { hitLength, tailKeyBoundaries = [] } = answer;
  const { enablePartialHashHits, hashBlockSize, blockSize } = settings;
  const found = createLookupResult(hitLength);
  if (hitLength === 0) return found;
  const step = enablePartialHashHits ? hashBlockSize : blockSize;
  const hashed = request.blockHashes.length * hashBlockSize;
  const refuse = (rule: string) => {
    throw requestError(`a lookup of request ${request.requestId} found ${hitLength} tokens; ${rule}`, {
      reqId: request.requestId,
      hitLength,
    });
  };
  if (hitLength > request.numTokens) refuse(`the request has ${request.numTokens}`);
  if (hitLength % step !== 0) refuse(`hits are a multiple of ${step}`);
  if (hitLength > hashed) refuse(`the request has hashes for ${hashed}`);
  if (!Array.isArray(tailKeyBoundaries))
    refuse(`tailKeyBoundaries is ${describe(tailKeyBoundaries)}, no list`);
  const seen = new Set<number>();
  const tails = tailKeyBoundaries.map(({ groupId, numTokens }) => {
    const group = Number.isSafeInteger(groupId) ? settings.coordinator?.kvCacheGroups[groupId] : undefined;
    if (group === undefined || seen.has(groupId))
      throw requestError(
        `a lookup of request ${request.requestId} names a tail block of group ${describe(groupId)}; it is one of ` +
          `${settings.storeGroupIds.length} groups, and each is named once`,
        { reqId: request.requestId, groupId },
      );
    seen.add(groupId);
    const size = group.kvCacheSpec.blockSize;
    const end = Math.min(Math.ceil(hitLength / size) * size, hashed);
    if (!(numTokens >= hitLength && numTokens <= end && numTokens % hashBlockSize === 0))
      throw requestError(
        `a lookup of request ${request.requestId} names a tail block of group ${groupId} at ${describe(numTokens)} ` +
          `tokens; after a hit of ${hitLength} it is a multiple of ${hashBlockSize} up to ${end}`,
        { reqId: request.requestId, groupId, numTokens, hitLength },
      );
    return new TailKeyBoundary(groupId, numTokens);
  });
  return { hitLength, tailKeyBoundaries: tails };
}
