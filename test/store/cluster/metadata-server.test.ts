import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { MooncakeCluster } from "../../../src/conformance/contract/mooncake/cluster.js";
import { isMooncakeKvError } from "../../../src/errors.js";
import { parseMasterAddress, reachMaster } from "../../../src/store/cluster/master-address.js";
import { parseMetadataServer, probeMetadataServer } from "../../../src/store/cluster/metadata-server.js";
import { findMooncake } from "../../helpers/mooncake-wheel.js";
import { rejects } from "../helpers.js";

const test = suite("metadata servers");
const installation = findMooncake();

/** Somebody who listens and says nothing, and a port on which nobody does. */
let listener: Server;
let live = "";
let dead = "";
test.before(async () => {
  [listener, live] = await listen();
  const [gone, address] = await listen();
  dead = address;
  gone.close();
  await once(gone, "close");
});
test.after(() => {
  listener.close();
});

async function listen(): Promise<[Server, string]> {
  const server = createServer((socket) => socket.on("error", () => {}).destroy());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return [server, `127.0.0.1:${(server.address() as { port: number }).port}`];
}

test("metadata_server, as Mooncake reads it", () => {
  const at = (host: string, port: number) => ({ host, port });
  const cases: [string, string, object[]][] = [
    ["P2PHANDSHAKE", "handshake", []],
    ["http://10.0.0.5:8080/metadata", "http", [at("10.0.0.5", 8080)]],
    ["https://meta/metadata", "http", [at("meta", 443)]],
    ["http://[::1]:8080/metadata", "http", [at("::1", 8080)]],
    ["10.0.0.5:2379", "etcd", [at("10.0.0.5", 2379)]],
    ["etcd-host:2379", "etcd", [at("etcd-host", 2379)]],
    ["etcd://[::1]:2379", "etcd", [at("::1", 2379)]],
    ["etcd://a:1;b:2, c:3;", "etcd", [at("a", 1), at("b", 2), at("c", 3)]],
    ["etcd://http://a:1;https://b:2/", "etcd", [at("a", 1), at("b", 2)]],
  ];
  for (const [text, kind, endpoints] of cases)
    assert.equal(parseMetadataServer(text), { kind, endpoints }, text);
});

test("what ends the process of Mooncake's client, or can't be connected to, is refused with what is right", () => {
  const cases: [string, RegExp][] = [
    ["redis://10.0.0.5:6379", /built without "redis".*SIGABRT/],
    ["k8s://a", /built without "k8s"/],
    ["HTTP://h:1/metadata", /in lower case only.*SIGABRT/],
    [" http://h:1/metadata", /built without " http"/],
    ["://x", /SIGABRT/],
    ["P2PHANDSHAKE://x", /SIGABRT/],
    ["p2phandshake", /written P2PHANDSHAKE, in upper case/],
    ["P2PHANDSHAKE ", /without blanks/],
    ["", /it is P2PHANDSHAKE, http:/],
    ["10.0.0.5", /needs its port, which is mostly 2379/],
    ["etcd://", /needs its port/],
    ["etcd://a:1;b", /needs its port/],
    ["a:0", /needs its port/],
    ["http://", /http:\/\/host:port\/metadata/],
    ["http://h:99999/metadata", /http:\/\/host:port\/metadata/],
    ["http://h:1/metadata?x=1", /appends \?key=/],
  ];
  for (const [text, expected] of cases)
    assert.throws(
      () => parseMetadataServer(text),
      (error: unknown) =>
        isMooncakeKvError(error, "ERR_CONFIG") &&
        error.message.startsWith(`metadataServer is ${JSON.stringify(text)}; it is `) &&
        expected.test(error.message),
      text,
    );
});

test("one that does not answer is named, and not the master", async () => {
  for (const text of [`http://${dead}/metadata`, `etcd://${dead}`, dead, `${dead};${dead}`])
    await rejects(
      () => probeMetadataServer(text, 1_000),
      "ERR_STORE",
      new RegExp(`^the metadata server ${text.replace(/[./]/g, "\\$&")} does not answer \\(ECONNREFUSED\\)`),
    );
  const started = performance.now();
  // Packets to a network for documentation go nowhere, or are refused at once.
  await rejects(() => probeMetadataServer("192.0.2.1:9", 200), "ERR_STORE", /metadata server 192\.0\.2\.1:9/);
  assert.ok(performance.now() - started < 1_000);
  await rejects(
    () => probeMetadataServer("http://u:secret@no-such-host.invalid/m", 2_000),
    "ERR_STORE",
    /\/\/\*\*\*@no-such/,
  );
  await rejects(() => probeMetadataServer("redis://x", 100), "ERR_CONFIG", /redis/);
});

test("one that answers of several is enough, and nobody is asked for a handshake", async () => {
  await probeMetadataServer("P2PHANDSHAKE", 1);
  for (const text of [`http://${live}/metadata`, `etcd://${dead};${live}`, `${live},${dead}`])
    await probeMetadataServer(text, 1_000);
});

test("a master behind an etcd: the etcd is contacted", async () => {
  assert.is(parseMasterAddress(`etcd://${live}`), undefined);
  assert.equal(await reachMaster(`etcd://${dead};${live}`, 1_000), {
    localAddress: "127.0.0.1",
    contacted: "etcd",
  });
  assert.equal(await reachMaster(live, 1_000), { localAddress: "127.0.0.1", contacted: "master" });
  assert.equal((await reachMaster("k8s://a/b", 1_000)).contacted, "unknown");
  await rejects(
    () => reachMaster(`etcd://${dead}`, 1_000),
    "ERR_STORE",
    /no etcd answers at etcd:.*leading Mooncake master \(ECONNREFUSED\)/,
  );
  await rejects(() => reachMaster("etcd://", 1_000), "ERR_CONFIG", /etcd:\/\/host:port/);
});

/** How a process ends that sets Mooncake's client up; "alive" when it still tries after `limitMs`. */
async function setUp(master: string, metadataServer: string, limitMs: number): Promise<string> {
  const script =
    "import sys, os; from mooncake.store import MooncakeDistributedStore as S; s = S();" +
    "print(s.setup('127.0.0.1', sys.argv[2], 0, 16 << 20, 'tcp', '', sys.argv[1])); sys.stdout.flush(); os._exit(0)";
  const child = spawn(installation!.python, ["-c", script, master, metadataServer], {
    stdio: ["ignore", "pipe", "ignore"],
    env: { ...process.env, MC_STORE_CLIENT_SETUP_RETRIES: "1" },
  });
  const ended = once(child, "close");
  let output = "";
  child.stdout!.on("data", (chunk) => {
    output += chunk;
  });
  const found = await Promise.race([ended, sleep(limitMs, undefined)]);
  if (found === undefined) {
    child.kill("SIGKILL");
    await ended;
    return "alive";
  }
  return child.signalCode ?? output.trim();
}

if (installation)
  test("the real client: what is refused ends its process, what is accepted does not", async () => {
    await using cluster = await MooncakeCluster.start(installation, { segmentBytes: 0 });
    const ends = (text: string) => setUp(cluster.masterAddress, text, 8_000);
    for (const text of [
      "redis://127.0.0.1:1",
      "HTTP://127.0.0.1:1/metadata",
      " http://127.0.0.1:1/m",
      "://x",
    ]) {
      assert.throws(() => parseMetadataServer(text), /SIGABRT/);
      assert.is(await ends(text), "SIGABRT", text);
    }
    assert.is(await ends("P2PHANDSHAKE"), "0");
    assert.is(await ends(`http://${dead}/metadata`), "-1");
    // It asks an etcd for five seconds and more.
    const asked = await Promise.all(
      [`etcd://${dead}`, dead, `${dead},${dead}`].map((text) => setUp(cluster.masterAddress, text, 2_500)),
    );
    assert.equal(asked, ["alive", "alive", "alive"]);
  });

test.run();
