import { test } from "uvu";
import {
  jobsAreSnapshots,
  neverSavesAndLoads,
  savedWatermarkNeverFalls,
  tokenIdsAreTheSavedRange,
} from "../../src/testing/laws/request-laws.js";
import { check } from "../helpers/property.js";

test("the saved watermark never falls", () => check(savedWatermarkNeverFalls()));

test("token ids are the range that is saved", () => check(tokenIdsAreTheSavedRange()));

test("no job both saves and loads", () => check(neverSavesAndLoads()));

test("jobs are snapshots", () => check(jobsAreSnapshots()));

test.run();
