import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import { lookupSocketPath, MAX_SOCKET_PATH, socketFile } from "../../src/lookup/index.js";
import { PythonFloat } from "../../src/python-text.js";

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
    [["a\nb"], "['a\\nb']"],
    [1e-7, "1e-07"],
    [1e16, "1e+16"],
    [new PythonFloat(1), "1.0"],
    [2n ** 64n, "18446744073709551616"],
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

test("a path, a name, an index or a port that is none is refused", () => {
  for (const [bad, pattern] of [
    [{ dataParallelIndex: Number.NaN }, /dataParallelIndex is NaN/],
    [{ dataParallelIndex: -1 }, /dataParallelIndex is -1/],
    [{ hostname: undefined }, /hostname is undefined/],
    [{ rpcBasePath: 5 }, /rpcBasePath is 5/],
    [{ lookupRpcPort: () => 1 }, /no value of JSON/],
    [{ rpcPort: 1 }, /no option "rpcPort"/],
  ] as const)
    assert.throws(
      () => lookupSocketPath({ ...base, ...bad } as never),
      (error: unknown) => isMooncakeKvError(error, "ERR_CONFIG") && pattern.test(error.message),
    );
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
