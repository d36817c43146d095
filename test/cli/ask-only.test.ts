import { test } from "uvu";
import * as assert from "uvu/assert";
import { askOnly, givesMemoryItself } from "../../src/cli/ask-only.js";

test("stores that join a cluster are joined without memory, unless the URI speaks of it", () => {
  const cases: Record<string, string> = {
    "mooncake:": "mooncake:?role=requester",
    "mooncake:./a.json": "mooncake:./a.json?role=requester",
    "mooncake:./a.json?": "mooncake:./a.json?role=requester",
    "mooncake:?master=a%3A1": "mooncake:?master=a%3A1&role=requester",
    "MOONCAKE:a?b=c": "MOONCAKE:a?b=c&role=requester",
    "mooncake-native:/l.so?config=a.json": "mooncake-native:/l.so?config=a.json&role=requester",
  };
  for (const [uri, expected] of Object.entries(cases)) {
    assert.is(askOnly(uri), expected);
    assert.not(givesMemoryItself(uri));
  }
  for (const uri of [
    "mooncake:?role=configured",
    "mooncake:a.json?globalSegmentSize=1GiB&master=a",
    "mooncake-native:l?role=requester",
  ]) {
    assert.is(askOnly(uri), uri);
    assert.ok(givesMemoryItself(uri));
  }
  for (const uri of ["embedded:?capacity=1GiB", "mooncake-admin:http://h:9003", "mooncakes:", "", "foo"])
    assert.is(askOnly(uri), uri);
});

test.run();
