import fc from "fast-check";
import { test } from "uvu";
import {
  registeredRankLocalLayout,
  registeredSharedLayout,
} from "../../src/testing/arbitraries/layout-arbitraries.js";
import {
  addressesAreExact,
  otherTpReadsTheSame,
  rowsFollowKeys,
  segmentsOfABlockDoNotOverlap,
  segmentsStayInTheirStorage,
  shardsTileABlock,
} from "../../src/testing/laws/layout-laws.js";
import { check } from "../helpers/property.js";

const anyLayout = () => fc.oneof(registeredRankLocalLayout(), registeredSharedLayout());

test("segments stay inside the storage of a tensor", () => check(segmentsStayInTheirStorage(anyLayout())));

test("no two segments of a block overlap", () => check(segmentsOfABlockDoNotOverlap(anyLayout())));

test("the rows of prepareValues are in the order of keys", () => check(rowsFollowKeys(anyLayout())));

test("the shards of all ranks tile a block exactly once", () => check(shardsTileABlock()));

test("what one TP size writes another reads", () => check(otherTpReadsTheSame()));

test("the fast loops add exactly", () => check(addressesAreExact()));

test.run();
