import { test } from "uvu";
import {
  failedCallsChangeNothing,
  jobsAndBlocksAreCountedOnce,
} from "../../src/testing/laws/connector-laws.js";
import { check } from "../helpers/property.js";

test("any events in any order: each block is released once, no job is lost or counted twice", () => {
  check(jobsAndBlocksAreCountedOnce(), { numRuns: 10_000 });
});

test("any events in any order: a call that throws changes nothing", () => {
  check(failedCallsChangeNothing(), { numRuns: 10_000 });
});

test.run();
