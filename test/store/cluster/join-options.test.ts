import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type JoinOptions, resolveJoinOptions } from "../../../src/store/cluster/join-options.js";
import { resolveMooncakeOptions } from "../../../src/store/mooncake/options.js";
import {
  MOONCAKE_NATIVE_OPTIONS,
  resolveMooncakeNativeOptions,
} from "../../../src/store/mooncake-native/options.js";
import { rejects } from "../helpers.js";

const test = suite("options of whoever joins a cluster");
let folder = "";
let path = "";
test.before(() => {
  folder = mkdtempSync(join(tmpdir(), "mooncake-kv-join-"));
  path = join(folder, "mooncake.json");
});
test.after(() => rmSync(folder, { recursive: true }));

/** What a file of an engine says to whoever joins with these options. */
function joined(content: object, options: JoinOptions = {}, environment: Record<string, string> = {}) {
  writeFileSync(path, JSON.stringify({ master_server_address: "m:1", ...content }));
  return resolveJoinOptions({ config: path, ...options }, environment);
}

test("a requester gives no memory, whatever the configuration says", async () => {
  const engine = { mode: "embedded", global_segment_size: "64MB" };
  assert.is((await joined(engine)).globalSegmentSize, 64n << 20n);
  assert.is((await joined(engine)).role, "configured");
  assert.is((await joined(engine, { role: "requester" })).globalSegmentSize, 0n);
  assert.is((await joined({ global_segment_size: 15_000_000 }, { role: "requester" })).globalSegmentSize, 0n);
  const variable = { MOONCAKE_GLOBAL_SEGMENT_SIZE: "1GB" };
  assert.is((await joined({}, {}, variable)).globalSegmentSize, 1n << 30n);
  assert.is((await joined({}, { role: "requester" }, variable)).globalSegmentSize, 0n);
  assert.is((await joined(engine, { role: "requester", globalSegmentSize: 0 })).globalSegmentSize, 0n);
  assert.is((await joined(engine, { globalSegmentSize: "1GiB" })).globalSegmentSize, 1n << 30n);
  await rejects(
    () => joined(engine, { role: "requester", globalSegmentSize: "1GiB" }),
    "ERR_CONFIG",
    /globalSegmentSize is "1GiB"; it is 0 for a requester/,
  );
  await rejects(
    () => joined({}, { role: "worker" as "requester" }),
    "ERR_CONFIG",
    /role is "worker"; it is "requester" or "configured"/,
  );
});

test("a size that can't be is shown as it was written, under its name there", async () => {
  for (const [written, shown] of [
    [15_000_000, "15000000"],
    ["15 MB", '"15 MB"'],
    [-5, "-5"],
    [2 ** 63, "9223372036854776000"],
  ] as const)
    await rejects(
      () => joined({ global_segment_size: written }),
      "ERR_CONFIG",
      new RegExp(`global_segment_size is ${shown}; it is 0, or at least 16MiB`),
    );
  await rejects(
    () => joined({ mode: "standalone-store", global_segment_size: "80GB" }),
    "ERR_CONFIG",
    /mooncake\.json: mode is "standalone-store" but global_segment_size is 85899345920 \("80GB"\)/,
  );
  await rejects(
    () => joined({}, {}, { MOONCAKE_GLOBAL_SEGMENT_SIZE: "1MB" }),
    "ERR_CONFIG",
    /MOONCAKE_GLOBAL_SEGMENT_SIZE is "1MB"; it is 0/,
  );
  for (const size of [15_000_000n, 15_000_000])
    await rejects(
      () => joined({}, { globalSegmentSize: size }),
      "ERR_CONFIG",
      /globalSegmentSize is 15000000; it is 0/,
    );
  await rejects(() => joined({}, { localBufferSize: -1n }), "ERR_CONFIG", /localBufferSize is -1; a size is/);
});

test("two sets of defaults: with a file those of its engine, without one those of a store", async () => {
  const { protocol, tenantId, ...others } = await joined(
    {},
    {},
    { MOONCAKE_PROTOCOL: "tcp", MOONCAKE_TENANT_ID: "t" },
  );
  assert.equal([protocol, tenantId], ["rdma", "default"]);
  assert.equal(
    [others.metadataServer, others.deviceName, others.globalSegmentSize, others.localBufferSize],
    ["P2PHANDSHAKE", "", 0n, 16n << 20n],
  );
  const alone = await resolveJoinOptions({ master: "a:1" }, {});
  assert.equal([alone.protocol, alone.tenantId, alone.localHostname], ["tcp", "default", undefined]);
  const variables = {
    MOONCAKE_MASTER: "env:1",
    MOONCAKE_TE_META_DATA_SERVER: "10.0.0.5:2379",
    MOONCAKE_LOCAL_HOSTNAME: "me",
    MOONCAKE_TENANT_ID: "t",
    MOONCAKE_DEVICE: "mlx5_0",
  };
  const read = await resolveJoinOptions({}, variables);
  assert.equal(
    [read.masterServerAddress, read.metadataServer, read.localHostname, read.tenantId, read.deviceName],
    ["env:1", "10.0.0.5:2379", "me", "t", "mlx5_0"],
  );
  // What the file leaves empty or null is not said.
  const empty = await joined(
    { metadata_server: "", device_name: null, global_segment_size: null },
    {},
    variables,
  );
  assert.equal([empty.metadataServer, empty.deviceName], ["10.0.0.5:2379", "mlx5_0"]);
  assert.is((await joined({ tenant_id: " x " }, {}, variables)).tenantId, "x");
});

test("text that can't be is refused, in an option, the file and the environment", async () => {
  const names = ["config", "master", "metadataServer", "localHostname", "protocol"] as const;
  for (const name of names)
    for (const value of [" ", "a\0b", 5])
      await rejects(
        () => resolveJoinOptions({ master: "m:1", [name]: value }, {}),
        "ERR_CONFIG",
        new RegExp(`^${name} is .*; it is text`),
      );
  await rejects(() => resolveJoinOptions({ master: "" }, {}), "ERR_CONFIG", /needs the address of a master/);
  await rejects(() => joined({ master_server_address: 5 }), "ERR_CONFIG", /master is 5; it is text/);
  await rejects(
    () => joined({ metadata_server: "redis://x" }),
    "ERR_CONFIG",
    /metadataServer is "redis:.*SIGABRT/,
  );
});

test("mooncake: a Python that no process can be started with is refused", async () => {
  for (const python of ["", " ", "a\0b", 5])
    await rejects(
      () => resolveMooncakeOptions({ master: "m:1", python }, {}),
      "ERR_CONFIG",
      /^python is .*; it is text/,
    );
  assert.is((await resolveMooncakeOptions({ master: "m:1" }, { MOONCAKE_KV_PYTHON: "" })).python, "python3");
  for (const environment of [{ A: "b\0" }, { "A=B": "c" }, { "": "c" }, { A: 5 }, "A=b", null])
    await rejects(
      () => resolveMooncakeOptions({ master: "m:1", environment }, {}),
      "ERR_CONFIG",
      /^environment /,
    );
  const { environment, unresponsiveMs } = await resolveMooncakeOptions(
    { master: "m:1", environment: { A: "b" }, unresponsiveMs: "2000" },
    { A: "a", C: "c" },
  );
  assert.equal(environment, { A: "b", C: "c" });
  assert.is(unresponsiveMs, 2_000);
});

test("mooncake-native: the same options, and what its library ends the process for is refused", async () => {
  assert.ok(
    ["role", "tenantId", "config"].every((name) => (MOONCAKE_NATIVE_OPTIONS as string[]).includes(name)),
  );
  const good = { library: "l.so", master: "m:1" };
  assert.is((await resolveMooncakeNativeOptions({ ...good, role: "requester" }, {})).role, "requester");
  for (const metadataServer of ["etcd://h:2379", "h:2379", "https://h/m", "redis://h"])
    await rejects(
      () => resolveMooncakeNativeOptions({ ...good, metadataServer }, {}),
      "ERR_CONFIG",
      /metadataServer is .*would end this process/,
    );
  await rejects(
    () => resolveMooncakeNativeOptions({ ...good, tenantId: "t" }, {}),
    "ERR_CONFIG",
    /no other tenant/,
  );
});

test.run();
