import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import { lookupSocketPath, MAX_SOCKET_PATH, socketFile } from "../../src/lookup/index.js";

const base = { rpcBasePath: "/tmp", hostname: "h" };

test("the port is Python's text of whatever was configured", () => {
  const texts: readonly [unknown, string][] = [
    [undefined, "0"],
    [0, "0"],
    [6557, "6557"],
    [1.5, "1.5"],
    ["abc", "abc"],
    ["", ""],
    [null, "None"],
    [true, "True"],
    [false, "False"],
    [[1, "a"], "[1, 'a']"],
    [{ a: null }, "{'a': None}"],
    [["it's"], `["it's"]`],
  ];
  for (const [lookupRpcPort, text] of texts)
    assert.is(
      lookupSocketPath({ ...base, lookupRpcPort, dataParallelIndex: 2 }),
      `ipc:///tmp/lookup_rpc_port_${text}_host_h_dp_rank2`,
    );
});

test("two engines of one host with default settings have one path", () => {
  assert.is(lookupSocketPath(base), lookupSocketPath({ ...base, lookupRpcPort: 0, dataParallelIndex: 0 }));
});

test("a path may have 107 bytes and not one more", () => {
  const file = `/${"x".repeat(MAX_SOCKET_PATH - 1)}`;
  assert.is(socketFile(`ipc://${file}`), file);
  for (const long of [`${file}x`, `/${"é".repeat(54)}`])
    assert.throws(
      () => socketFile(`ipc://${long}`),
      (error: unknown) => isMooncakeKvError(error, "ERR_CONFIG") && /at most 107/.test(error.message),
    );
});

test("only a named ipc socket has a file", () => {
  assert.is(socketFile("tcp://127.0.0.1:5555"), undefined);
  assert.is(socketFile("inproc://x"), undefined);
  assert.is(socketFile("ipc://@abstract"), undefined);
  for (const wrong of ["", "/tmp/x", "ipc://", "http://x"])
    assert.throws(
      () => socketFile(wrong),
      (error: unknown) => isMooncakeKvError(error, "ERR_CONFIG"),
    );
});

test.run();
