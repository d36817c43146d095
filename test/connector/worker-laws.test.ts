import { test } from "uvu";
import {
  everythingIsReportedAndNoBytesAreWrong,
  noHolesAreLeft,
} from "../../src/testing/laws/worker-laws.js";
import { checkAsync } from "../helpers/property.js";

test("whatever the store does, everything is reported and no bytes are wrong", async () => {
  await checkAsync(everythingIsReportedAndNoBytesAreWrong());
});

test("once the store works again, no hole is left", async () => {
  await checkAsync(noHolesAreLeft());
});

test.run();
