import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { openStore } from "../../../src/store/index.js";
import { rejects } from "../helpers.js";

test("opens by URI and by object, and gives what only an admin store has", async () => {
  for (const target of [
    "mooncake-admin:http://127.0.0.1:1?deadlineMs=500&concurrency=2&leaseMs=1000",
    { backend: "mooncake-admin", url: "http://127.0.0.1:1", deadlineMs: 500 },
  ] as const) {
    await using store = await openStore(target);
    assert.is(store.backend, "mooncake-admin");
    await rejects(() => store.segments(), "ERR_STORE", /127\.0\.0\.1:1 failed.*code -900/);
  }
});

for (const [uri, message] of [
  ["mooncake-admin:", /url is undefined; it is the address of the master's HTTP interface/],
  ["mooncake-admin:127.0.0.1:9003", /is written http:\/\/host:9003/],
  ["mooncake-admin:http://h:1?speed=9", /no option "speed"; it has url, deadlineMs/],
  ["mooncake-admin:http://h:1?url=http://i:1", /the option "url" occurs twice/],
  ["mooncake-native:", /library is undefined; it is the path of Mooncake's C library/],
  ["mooncake-native:/x.so?master=", /needs the address of a master/],
  ["mooncake-native:/x.so?python=1", /no option "python"; it has library/],
] as const)
  test(`refuses ${uri}`, async () => {
    const library = process.env["MOONCAKE_STORE_LIBRARY"];
    delete process.env["MOONCAKE_STORE_LIBRARY"];
    try {
      await rejects(() => openStore(uri), "ERR_CONFIG", message);
    } finally {
      if (library !== undefined) process.env["MOONCAKE_STORE_LIBRARY"] = library;
    }
  });

test("the admin store works without the addon, arenas included", () => {
  const script = `
    import { openStore } from ${JSON.stringify(pathToFileURL(join("src", "store", "index.ts")).href)};
    const store = await openStore("mooncake-admin:http://127.0.0.1:1");
    const arena = await store.createArena(4096);
    const other = await store.createArena(10);
    if (arena.bytes.length !== 4096 || arena.fileDescriptor !== undefined) throw new Error("no arena");
    if (other.baseAddress < arena.baseAddress + 4096n || arena.baseAddress < 1n << 63n) throw new Error("odd address");
    await arena.close();
    if (arena.bytes.length !== 0) throw new Error("still there");
    const refused = await store.registerBuffer(4096n, 10).catch((error) => error.code);
    await store.close();
    console.log(refused);`;
  const output = execFileSync(
    process.execPath,
    ["--import", "tsx", "--input-type=module", "--eval", script],
    {
      encoding: "utf8",
      env: { ...process.env, MOONCAKE_KV_ADDON: "/nowhere/mooncake_kv.node" },
    },
  );
  assert.is(output.trim(), "ERR_NATIVE");
});

test.run();
