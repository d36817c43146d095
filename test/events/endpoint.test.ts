import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import {
  checkConnectEndpoint,
  checkPublishEndpoint,
  isBindEndpoint,
  offsetEndpointPort,
} from "../../src/events/endpoint.js";

const refused = (call: () => unknown, pattern: RegExp) =>
  assert.throws(
    call,
    (error: unknown) => isMooncakeKvError(error, "ERR_CONFIG") && pattern.test(error.message),
    String(pattern),
  );

test("an endpoint that engines bind is no place to connect to", () => {
  for (const [endpoint, pattern] of [
    ["tcp://*:20080", /\* is where an engine binds; name its host, as in tcp:\/\/127\.0\.0\.1:20080/],
    ["tcp://0.0.0.0:5557", /0\.0\.0\.0 is where an engine binds/],
    ["tcp://[::]:5557", /is where an engine binds/],
    ["tcp://:5557", /a host is missing/],
    ["tcp://host", /a port is missing/],
    ["tcp://host:", /the port must be a number/],
    ["tcp://host:0", /the port must be a number of 1 to 65535/],
    ["tcp://host:65536", /the port must be a number of 1 to 65535/],
    ["tcp://host:*", /the port must be a number/],
    ["http://host:5557", /only tcp, ipc and inproc/],
    ["host:5557", /like tcp:\/\/host:5557/],
    ["ipc://", /a name is missing/],
    [`ipc:///${"x".repeat(107)}`, /its path has 108 bytes/],
    ["tcp://host:5557/", /the port must be a number/],
    ["tcp://user@host:5557", /without anything else/],
    ["tcp://my host:5557", /without anything else/],
    ["tcp://*:*", /name its host, as in tcp:\/\/127\.0\.0\.1:5557/],
    ["", /like tcp/],
    [undefined, /must be a text/],
    [5557, /must be a text/],
  ] as const)
    refused(() => checkConnectEndpoint("endpoint", endpoint), pattern);
  for (const endpoint of [
    "tcp://host:1",
    "tcp://10.0.0.1:65535",
    "tcp://[::1]:5557",
    "ipc:///tmp/x",
    "inproc://x",
  ])
    checkConnectEndpoint("endpoint", endpoint);
});

test("an endpoint to publish at may have any host, and leave the port to the system", () => {
  for (const endpoint of [
    "tcp://*:0",
    "tcp://*:*",
    "tcp://0.0.0.0:5557",
    "tcp://host:1",
    "ipc://x",
    "inproc://x",
  ])
    checkPublishEndpoint("endpoint", endpoint);
  for (const endpoint of ["tcp://*", "tcp://*:65536", "tcp://*:-1", "pgm://x:1", "", 5, undefined])
    refused(() => checkPublishEndpoint("endpoint", endpoint), /^endpoint is /);
});

test("ports of ranks end at the last port", () => {
  assert.is(offsetEndpointPort("tcp://*:65534", 1), "tcp://*:65535");
  refused(() => offsetEndpointPort("tcp://*:65535", 1), /port 65536; ports end at 65535/);
  for (const rank of [-1, 0.5, Number.NaN, "1"])
    refused(() => offsetEndpointPort("tcp://*:5557", rank as number), /rank is/);
  refused(() => offsetEndpointPort(undefined as never, 1), /must be a text/);
});

test("where vLLM's publisher binds, and where it connects", () => {
  assert.equal(
    ["tcp://*:1", "tcp://[::]:1", "ipc://x", "inproc://x", "tcp://127.0.0.1:1"].map(isBindEndpoint),
    [true, true, true, true, false],
  );
});

test.run();
