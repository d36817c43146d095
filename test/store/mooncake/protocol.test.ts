import { fstatSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  sidecarCodesCodec,
  sidecarExistsCodec,
  sidecarGetCodec,
  sidecarPutCodec,
  sidecarRegisterCodec,
  sidecarSetupCodec,
  sidecarSizesCodec,
  sidecarSpansCodec,
  sidecarUnregisterCodec,
} from "../../../generated/typescript/vllm-0.33/store-codecs.js";
import { KeyTable } from "../../../src/key/key-table.js";
import type { CreatedArena } from "../../../src/native/addon.js";
import { loadNative } from "../../../src/native/load.js";
import { bytesOf, keyFrames } from "../../../src/store/mooncake/key-frames.js";
import { LogBuffer } from "../../../src/store/mooncake/log-buffer.js";
import { int32, int64 } from "../../../src/store/mooncake/replies.js";
import { SidecarClient } from "../../../src/store/mooncake/sidecar-client.js";
import { FAKE } from "./fake.js";
import { pattern } from "./setup.js";

// What the sidecar itself checks, whatever the other side sends. The stand-in for the wheel is enough.

const SIZE = 8192;

/** A client whose requests may be answered at length. */
class Requests extends SidecarClient {
  override request(command: readonly Uint8Array[], most: number = 1 << 20): Promise<Uint8Array[]> {
    return super.request(command, most);
  }
}

interface World {
  client: Requests;
  arena: CreatedArena;
}

const test = suite<World>("sidecar protocol");

test.before.each(async (world) => {
  world.client = new Requests({
    python: "python3",
    threads: 2,
    environment: { ...process.env, PYTHONPATH: FAKE },
    descriptors: [],
    unresponsiveMs: 5_000,
    log: new LogBuffer(4096),
  });
  world.arena = loadNative().arenaCreate(SIZE);
});

test.after.each(async ({ client, arena }) => {
  client.kill("the test is over");
  await client.ended;
  loadNative().arenaClose(arena.handle);
});

const text = (value: string): Uint8Array => Buffer.from(value);

async function setUp({ client }: World): Promise<void> {
  await client.request(
    sidecarSetupCodec.toBinary({
      globalSegmentSize: 0n,
      localBufferSize: 1n << 24n,
      localHostname: text("127.0.0.1"),
      metadataServer: text("P2PHANDSHAKE"),
      protocol: text("tcp"),
      rdmaDevices: text(""),
      masterServerAddress: text("127.0.0.1:1"),
      tenantId: text("default"),
    }),
  );
}

async function register({ client, arena }: World, changes: object = {}): Promise<number> {
  const [frame] = await client.request(
    sidecarRegisterCodec.toBinary({
      region: 5,
      owner: process.pid,
      descriptor: arena.fd,
      size: BigInt(SIZE),
      inode: fstatSync(arena.fd, { bigint: true }).ino,
      ...changes,
    }),
  );
  return int32(sidecarCodesCodec.fromBinary(frame!).codes)[0]!;
}

const PUT = sidecarPutCodec.toBinary({
  overwrite: false,
  replicaNum: 1,
  softPin: false,
  softPinTtlMs: 0n,
  hardPin: false,
  segmentEnds: text(""),
  segments: text(""),
  groupEnds: text(""),
  groups: text(""),
});

const keys = (...names: string[]): Uint8Array[] => keyFrames(KeyTable.fromTexts(names).flat());

function spans(regions: number[], offsets: bigint[], sizes: bigint[], rowEnds: number[] = []): Uint8Array[] {
  return sidecarSpansCodec.toBinary({
    rowEnds: bytesOf(Uint32Array.from(rowEnds)),
    regions: bytesOf(Uint32Array.from(regions)),
    offsets: bytesOf(BigUint64Array.from(offsets)),
    sizes: bytesOf(BigUint64Array.from(sizes)),
  });
}

async function refusal(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("the sidecar should have refused");
}

test("nothing works before setup, and the client library is never reached", async (world) => {
  const { client } = world;
  assert.match(await refusal(client.request([sidecarExistsCodec.toBinary({}), ...keys("a")])), "not set up");
  assert.match(await refusal(register(world)), "not set up");
  await setUp(world);
  assert.match(await refusal(setUp(world)), "set up already");
});

test("offsets are checked against the regions", async (world) => {
  const { client, arena } = world;
  await setUp(world);
  assert.is(await register(world), 0);
  const put = (...frames: Uint8Array[]) => client.request([...PUT, ...frames]);
  const outside: [number[], bigint[], bigint[]][] = [
    [[5], [0n], [BigInt(SIZE) + 1n]],
    [[5], [BigInt(SIZE)], [1n]],
    [[5], [2n ** 64n - 1n], [2n]],
    [[5], [4n], [2n ** 64n - 1n]],
    [[6], [0n], [1n]],
  ];
  for (const [regions, offsets, sizes] of outside) {
    assert.match(await refusal(put(...keys("a"), ...spans(regions, offsets, sizes))), /outside|no region/);
    const get = [sidecarGetCodec.toBinary({}), ...keys("a"), ...spans(regions, offsets, sizes)];
    assert.match(await refusal(client.request(get)), /outside|no region/);
  }
  assert.match(await refusal(put(...keys("a", "b"), ...spans([5, 6], [0n, 0n], [1n, 1n]))), "no region 6");
  assert.match(await refusal(put(...keys("a", "b"), ...spans([5, 5], [0n, 8192n], [1n, 1n]))), "outside");
  assert.match(await refusal(put(...keys("a", "b"), ...spans([5], [0n], [1n]))), "do not fit");
  assert.match(await refusal(put(...keys("a"), ...spans([5, 5, 5], [0n], [1n]))), "do not fit");
  assert.match(await refusal(put(...keys("a"), ...spans([5], [0n, 1n], [1n, 1n], [3]))), "do not fit");
  // And what is inside works.
  new Uint8Array(arena.buffer).set(pattern(1, 100));
  const [stored] = await put(...keys("a"), ...spans([5], [0n], [100n]));
  assert.equal([...int32(sidecarCodesCodec.fromBinary(stored!).codes)], [0]);
  const [read] = await client.request([
    sidecarGetCodec.toBinary({}),
    ...keys("a"),
    ...spans([5], [8092n], [100n]),
  ]);
  assert.equal([...int64(sidecarSizesCodec.fromBinary(read!).sizes)], [100n]);
  assert.equal(new Uint8Array(arena.buffer, 8092, 100).slice(), pattern(1, 100));
});

test("a region is what was meant: its inode and size are checked, its number is used once", async (world) => {
  const { client } = world;
  await setUp(world);
  assert.match(await refusal(register(world, { inode: 1n })), "is inode");
  assert.match(await refusal(register(world, { size: BigInt(SIZE) + 1n })), "is inode");
  assert.match(await refusal(register(world, { descriptor: 9_999 })), "No such file");
  assert.is(await register(world), 0);
  assert.match(await refusal(register(world)), "region 5 exists already");
  await client.request(sidecarUnregisterCodec.toBinary({ region: 5 }));
  assert.match(await refusal(client.request(sidecarUnregisterCodec.toBinary({ region: 5 }))), "no region 5");
  assert.is(await register(world), 0);
});

test("keys that do not fit their description are refused", async (world) => {
  const { client, arena } = world;
  await setUp(world);
  await register(world);
  const exists = (frames: Uint8Array[]) => client.request([sidecarExistsCodec.toBinary({}), ...frames]);
  const frames = (numbers: number[], offset: bigint, size: number, ends: number[], joined: string) => {
    const head = Buffer.alloc(24);
    head.writeUInt32BE(numbers[0]!, 0);
    head.writeUInt32BE(numbers[1]!, 4);
    head.writeUInt32BE(5, 8);
    head.writeBigUInt64BE(offset, 12);
    head.writeUInt32BE(size, 20);
    return [head, bytesOf(Uint32Array.from(ends)), text(joined)];
  };
  for (const bad of [
    frames([2, 3], 0n, 0, [], "abcde"),
    frames([2, 0], 0n, 0, [1], "abc"),
    frames([2, 0], 0n, 0, [2, 1], "a"),
    frames([2, 0], 0n, 0, [1, 9], "ab"),
    frames([1, 4], 8190n, 4, [], ""),
    frames([1, 3], 0n, 4, [], ""),
  ])
    assert.match(await refusal(exists(bad)), /fit|fall|outside|are not/);
  new Uint8Array(arena.buffer).set(text("keyskeyt"), 16);
  const [found] = await exists(frames([2, 4], 16n, 8, [], ""));
  assert.equal([...int32(sidecarCodesCodec.fromBinary(found!).codes)], [0, 0]);
});

test("commands that are none are refused, and the process goes on", async (world) => {
  const { client } = world;
  await setUp(world);
  assert.match(await refusal(client.request([text("explode")])), /no command b'explode'/);
  assert.match(await refusal(client.request([])), "no command");
  assert.match(await refusal(client.request([sidecarExistsCodec.toBinary({})])), "SidecarKeys");
  assert.match(await refusal(client.request([...PUT.slice(0, 2)])), "SidecarPut");
  const [found] = await client.request([sidecarExistsCodec.toBinary({}), ...keys("a")]);
  assert.equal([...int32(sidecarCodesCodec.fromBinary(found!).codes)], [0]);
});

test.run();
