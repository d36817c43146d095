import { suite } from "uvu";
import * as assert from "uvu/assert";
import { MooncakeCluster } from "../../../src/conformance/contract/mooncake/cluster.js";
import { type FailedSetup, setupFailure } from "../../../src/store/cluster/setup-failure.js";
import { sizeText } from "../../../src/store/cluster/size-text.js";
import { openStore } from "../../../src/store/index.js";
import { findMooncake } from "../../helpers/mooncake-wheel.js";
import { rejects } from "../helpers.js";

const test = suite("reasons of a failed set-up");

const PLAIN: FailedSetup = {
  code: -1,
  master: "m:1",
  metadataServer: "P2PHANDSHAKE",
  globalSegmentSize: 0n,
  logTail: [],
};

/** A line of Mooncake's log. */
const logged = (severity: string, text: string): string =>
  `${severity}1201 00:09:51.553375 12672 some_file.cpp:340] ${text}`;

/** What the official package logs, shortened, when nobody listens at an HTTP metadata server. */
const HTTP_DEAD = [
  logged("I", "Transfer Engine RPC using new RPC mapping, listening on 192.0.2.2:15118"),
  logged("E", "PUT http://u:secret@h:1/metadata?key=k curl: Couldn't connect to server"),
  logged("E", "Failed to set location of 127.0.0.1:12953"),
  logged("E", "Failed to initialize transfer engine, rc=-200"),
  logged("E", "DELETE http://u:secret@h:1/metadata?key=k curl: Couldn't connect to server"),
  logged("E", "Failed to remove location of 127.0.0.1:12953"),
  logged("W", "Failed to create client on port 12953, retry 1/1"),
  logged("E", "Failed to create client after 1 retries"),
];

test("the component, by the code and the log", () => {
  const cases: [Partial<FailedSetup>, component: string, message: RegExp][] = [
    [
      {
        code: -600,
        globalSegmentSize: 2048n << 30n,
        logTail: [logged("E", "Failed to allocate segment memory")],
      },
      "memory",
      /2 TiB of memory for the pool could not be had.*INVALID_PARAMS \(-600\).*says: Failed to allocate segment memory$/,
    ],
    [{ code: -600, globalSegmentSize: 64n << 20n }, "memory", /64 MiB of memory/],
    [
      { metadataServer: "http://u:secret@h:1/metadata", logTail: HTTP_DEAD },
      "metadata server",
      /the metadata server http:\/\/\*\*\*@h:1\/metadata did.*INTERNAL_ERROR \(-1\).*says: DELETE .*Couldn't connect/,
    ],
    [
      { metadataServer: "http://h:1/metadata" },
      "metadata server",
      /the metadata server http:\/\/h:1\/metadata/,
    ],
    [
      {
        metadataServer: "h:1",
        logTail: [logged("E", "EtcdStoragePlugin: unable to set k in h:1: context deadline exceeded")],
      },
      "metadata server",
      /the metadata server h:1/,
    ],
    [
      { logTail: [logged("F", "Unable to find metadata storage plugin redis")] },
      "metadata server",
      /Unable to find metadata storage plugin redis$/,
    ],
    [{ logTail: [logged("E", "RdmaTransport: No available RNIC")] }, "transport", /network devices/],
    [{ logTail: [logged("E", "unsupported_protocol protocol=foo")] }, "transport", /protocol=foo$/],
    [
      { logTail: [logged("E", "Client not available"), ...HTTP_DEAD.slice(-2)] },
      "master",
      /the master did.*Client not available$/,
    ],
    [{ code: -300 }, "master", /of another release.*INVALID_VERSION/],
    [
      { logTail: [logged("E", "Local segment descriptor not found")] },
      "unknown",
      /refused; setup gave INTERNAL_ERROR \(-1\)$/,
    ],
    [{ logTail: HTTP_DEAD.slice(-2) }, "unknown", /says: Failed to create client after 1 retries$/],
    [{ code: -901, timeoutMs: 150 }, "unknown", /can't be joined: there was no answer within 150 ms$/],
    [
      { code: -901, timeoutMs: 150, metadataServer: "h:1", logTail: HTTP_DEAD.slice(0, 1) },
      "metadata server",
      /no answer within 150 ms: the metadata server h:1/,
    ],
    [
      { code: -901, timeoutMs: 150, metadataServer: "h:1", logTail: [logged("I", "client_id=1-2")] },
      "master",
      /no answer within 150 ms: the master/,
    ],
  ];
  for (const [failed, component, message] of cases) {
    const error = setupFailure({ ...PLAIN, ...failed });
    assert.is(error.code, "ERR_STORE");
    assert.match(error.message, /^the Mooncake cluster of the master m:1 can't be joined: /);
    assert.match(error.message, message);
    assert.is(error.details["component"], component, error.message);
    assert.is(error.details["code"], { ...PLAIN, ...failed }.code);
    assert.is((error.details["log"] as string[]).length, failed.logTail?.length ?? 0);
    assert.not.match(`${error.message}${JSON.stringify(error.details)}`, "secret");
    assert.not.match(error.message, "null argument");
  }
});

test("sizes for people", () => {
  const cases: [bigint, string][] = [
    [0n, "0 bytes"],
    [1n, "1 byte"],
    [15_000_000n, "15000000 bytes"],
    [16n << 20n, "16 MiB"],
    [1536n << 20n, "1.5 GiB"],
    [4n << 40n, "4 TiB"],
  ];
  for (const [bytes, text] of cases) assert.is(sizeText(bytes), text);
});

const installation = findMooncake();
if (installation)
  test("the real client: memory that can't be had, a metadata server that is none", async () => {
    await using cluster = await MooncakeCluster.start(installation, { segmentBytes: 0 });
    const { masterAddress: master, adminUrl } = cluster;
    const open = { backend: "mooncake", master, python: installation.python } as const;
    await rejects(
      () => openStore({ ...open, globalSegmentSize: "2048GB" }),
      "ERR_STORE",
      /2 TiB of memory for the pool could not be had.*allocate/,
    );
    await rejects(
      () => openStore({ ...open, metadataServer: `${adminUrl}/metadata` }),
      "ERR_STORE",
      new RegExp(`the metadata server ${adminUrl}/metadata did not do its part.*http=404`),
    );
    await rejects(
      () => openStore({ ...open, metadataServer: "127.0.0.1:1" }),
      "ERR_STORE",
      /^the metadata server 127\.0\.0\.1:1 does not answer/,
    );
    await rejects(
      () => openStore({ ...open, protocol: "foo" }),
      "ERR_STORE",
      /network devices.*protocol=foo/,
    );
  });

test.run();
