import { test } from "uvu";
import * as assert from "uvu/assert";
import { STORE_CODES, storeCode } from "../../src/store/index.js";

test("the table has every code of Mooncake once, with a name of its own", () => {
  const names = new Set([...STORE_CODES.values()].map(({ name }) => name));
  assert.is(STORE_CODES.size, 72);
  assert.is(names.size, STORE_CODES.size);
  for (const [number, { code, name, meaning }] of STORE_CODES) {
    assert.is(code, number);
    assert.ok(code <= 0);
    assert.match(name, /^[A-Z0-9_]+$/);
    assert.ok(meaning.length > 3);
  }
});

test("names and advice of the codes that callers meet", () => {
  const expected: readonly (readonly [number, string, boolean])[] = [
    [0, "OK", false],
    [-1, "INTERNAL_ERROR", false],
    [-200, "NO_AVAILABLE_HANDLE", true],
    [-600, "INVALID_PARAMS", false],
    [-601, "ILLEGAL_CLIENT", false],
    [-703, "REPLICA_IS_NOT_READY", true],
    [-704, "OBJECT_NOT_FOUND", false],
    [-706, "OBJECT_HAS_LEASE", true],
    [-707, "LEASE_EXPIRED", true],
    [-714, "OBJECT_REPLICA_BUSY", true],
    [-800, "TRANSFER_FAIL", true],
    [-900, "RPC_FAIL", true],
    [-901, "RPC_TIMEOUT", true],
  ];
  for (const [code, name, retry] of expected) {
    assert.is(storeCode(code).name, name);
    assert.is(storeCode(code).retry, retry, name);
  }
});

test("a number that Mooncake does not define is said to be unknown", () => {
  assert.is(storeCode(-12345).name, "UNKNOWN");
  assert.is(storeCode(-12345).code, -12345);
});

test.run();
