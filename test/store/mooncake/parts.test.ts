import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { sidecarKeysCodec } from "../../../generated/typescript/vllm-0.33/store-codecs.js";
import { KeyTable } from "../../../src/key/key-table.js";
import { parseMasterAddress } from "../../../src/store/cluster/master-address.js";
import { keyFrames } from "../../../src/store/mooncake/key-frames.js";
import { LogBuffer } from "../../../src/store/mooncake/log-buffer.js";
import { encodeMessage, MessageReader } from "../../../src/store/mooncake/message.js";
import { resolveMooncakeOptions } from "../../../src/store/mooncake/options.js";
import { sliceRows } from "../../../src/store/mooncake/slices.js";
import { Staging } from "../../../src/store/mooncake/staging.js";
import { Deadline } from "../../../src/store/shared/deadline.js";
import { keyRange, pickKeys } from "../../../src/store/shared/keys.js";
import { check } from "../../helpers/property.js";
import { rejects } from "../helpers.js";
import { pattern } from "./setup.js";

test("messages come out as they went in, however the stream is cut", () => {
  const messages = fc.array(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 5 }), { maxLength: 5 });
  check(
    fc.property(messages, fc.integer({ min: 1, max: 30 }), (sent, step) => {
      const stream = Buffer.concat(sent.flatMap(encodeMessage));
      const reader = new MessageReader(() => 1 << 20);
      const received: Uint8Array[][] = [];
      for (let at = 0; at < stream.length; at += step)
        received.push(...reader.push(stream.subarray(at, at + step)));
      assert.equal(
        received.map((frames) => frames.map((frame) => [...frame])),
        sent.map((frames) => frames.map((frame) => [...frame])),
      );
    }),
  );
});

test("a long message is not copied, and a frame longer than its message is refused", () => {
  const long = pattern(1, 100_000);
  const parts = encodeMessage([Uint8Array.of(1), long]);
  assert.ok(parts.includes(long));
  const [[first, second]] = new MessageReader(() => 1 << 20).push(Buffer.concat(parts)) as [Uint8Array[]];
  assert.equal([...first!], [1]);
  assert.ok(Buffer.from(second!).equals(long));
  assert.throws(
    () => new MessageReader(() => 1 << 20).push(Buffer.from([0, 0, 0, 5, 0, 0, 0, 9, 1])),
    /longer than its message/,
  );
  assert.throws(
    () => new MessageReader(() => 1 << 20).push(Buffer.from([0, 0, 0, 2, 0, 0])),
    /in the middle of a length/,
  );
  // Its length is enough: nothing of it is waited for, or kept.
  assert.throws(
    () => new MessageReader(() => 1 << 20).push(Buffer.from([0xff, 0xff, 0xff, 0xff])),
    /4294967295 bytes, where 1048576 are due at most/,
  );
});

test("keys: one length or ends, ranges and picks, always the same keys", () => {
  const texts = fc.array(fc.string({ maxLength: 5 }), { minLength: 1, maxLength: 12 });
  check(
    fc.property(texts, fc.nat(), fc.nat(), (keys, a, b) => {
      const flat = KeyTable.fromTexts(keys.map((key) => key.toWellFormed())).flat();
      const [start, end] = [a % (keys.length + 1), b % (keys.length + 1)].sort((x, y) => x - y) as [
        number,
        number,
      ];
      const rows = keys.map((_, i) => i).filter((i) => (a >> (i % 8)) % 2 === 0);
      const all = unpack(keyFrames(flat));
      assert.equal(unpack(keyFrames(keyRange(flat, start, end))), all.slice(start, end));
      assert.equal(
        unpack(keyFrames(pickKeys(flat, rows))),
        rows.map((row) => all[row]),
      );
    }),
  );
});

function unpack(frames: Uint8Array[]): string[] {
  const { keyCount, keyLength, keyEnds, keys } = sidecarKeysCodec.fromBinary(frames);
  const bytes = new Uint8Array(keyEnds);
  const ends =
    keyLength > 0
      ? Array.from({ length: keyCount }, (_, i) => (i + 1) * keyLength)
      : [...new Uint32Array(bytes.buffer)];
  assert.is(ends.length, keyCount);
  return ends.map((end, i) => Buffer.from(keys.subarray(ends[i - 1] ?? 0, end)).toString("hex"));
}

test("staging: blocks never overlap, all comes back, and who waits is served in order", async () => {
  const step = fc.record({ size: fc.integer({ min: 1, max: 40_000 }), free: fc.nat(5) });
  check(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const staging = new Staging(128 << 10);
      const held: { offset: number; size: number }[] = [];
      for (const { size, free } of steps) {
        const block = staging.tryAllocate(size);
        if (block) {
          assert.ok(block.size >= size && block.offset >= 0 && block.offset + block.size <= staging.size);
          for (const other of held)
            assert.ok(block.offset + block.size <= other.offset || other.offset + other.size <= block.offset);
          held.push(block);
        }
        for (const given of held.splice(0, free)) staging.free(given);
      }
      for (const given of held) staging.free(given);
      assert.is(staging.tryAllocate(staging.size)?.size, staging.size);
    }),
  );
  const staging = new Staging(12_288);
  const all = staging.tryAllocate(12_288)!;
  const deadline = new Deadline(5_000);
  const order: string[] = [];
  const large = staging.allocate(12_288, deadline);
  large.then(() => order.push("large"));
  const small = staging.allocate(1, deadline);
  small.then(() => order.push("small"));
  assert.is(staging.tryAllocate(1), undefined);
  staging.free(all);
  staging.free((await large)!);
  assert.ok(await small);
  assert.equal(order, ["large", "small"]);
  const short = new Deadline(20);
  assert.is(await staging.allocate(12_288, short), undefined);
  assert.is(await staging.allocate(1, short), undefined);
  deadline.end();
});

test("slices hold few enough keys and bytes, and every row once", () => {
  check(
    fc.property(fc.array(fc.integer({ min: 1, max: 50 }), { maxLength: 2_500 }), (sizes) => {
      const rows = sizes.map((_, i) => i);
      const slices = sliceRows(rows, (row) => sizes[row]!, 40);
      assert.equal(
        slices.flatMap((slice) => slice.rows),
        rows,
      );
      for (const slice of slices) {
        assert.is(
          slice.bytes,
          slice.rows.reduce((sum, row) => sum + sizes[row]!, 0),
        );
        assert.ok(slice.rows.length === 1 || slice.bytes <= 40);
      }
    }),
  );
  const many = sliceRows(
    Array.from({ length: 2_500 }, (_, i) => i),
    () => 0,
    10,
  );
  assert.equal(
    many.map((slice) => slice.rows.length),
    [1_000, 1_000, 500],
  );
});

test("the log keeps its end, from the start of a line", () => {
  const log = new LogBuffer(1_000);
  for (let i = 0; i < 500; i++) log.push(Buffer.from(`line ${i}\n`));
  assert.ok(log.text().length <= 1_000);
  assert.match(log.text(), /^line \d+\n/);
  assert.match(log.text(), /line 499\n$/);
  assert.equal(log.tail(2), ["line 498", "line 499"]);
  assert.is(new LogBuffer(10).text(), "");
});

test("addresses of masters", () => {
  assert.equal(parseMasterAddress("a.b:1"), { host: "a.b", port: 1 });
  assert.equal(parseMasterAddress("host"), { host: "host", port: 50051 });
  assert.equal(parseMasterAddress("[::1]:5"), { host: "::1", port: 5 });
  assert.is(parseMasterAddress("etcd://a:1;b:2"), undefined);
  for (const bad of ["", ":1", "a:", "a:0", "a:65536", "a b", "a:1:2"])
    assert.throws(() => parseMasterAddress(bad), /written host:port/, bad);
});

test("options: an option wins over the file, the file over the environment", async () => {
  const environment = { MOONCAKE_MASTER: "env:1", MOONCAKE_PROTOCOL: "rdma", MOONCAKE_KV_PYTHON: "py" };
  const resolved = await resolveMooncakeOptions({ threads: "3", deadlineMs: 100 }, environment);
  assert.is(resolved.masterServerAddress, "env:1");
  assert.is(resolved.protocol, "rdma");
  assert.is(resolved.python, "py");
  assert.is(resolved.threads, 3);
  assert.is(resolved.globalSegmentSize, 0n);
  const mine = await resolveMooncakeOptions({ master: "mine:2", python: "p" }, environment);
  assert.is(mine.masterServerAddress, "mine:2");
  for (const [options, expected] of [
    [{}, /needs the address of a master/],
    [{ master: "a:1", threads: 0 }, /threads is 0/],
    [{ master: "a:1", deadlineMs: "soon" }, /deadlineMs is "soon"/],
    [{ master: "a:1", metadataServer: "ftp://x" }, /metadataServer/],
    [{ master: "a:1", metadataServer: "" }, /metadataServer/],
    [{ master: "a:1", globalSegmentSize: "1MiB" }, /at least 16MiB/],
    [{ master: "a:1", staging: 5 }, /staging/],
    [{ master: "a:1", scattered: "magic" }, /scattered/],
    [{ master: "a:1", unresponsiveMs: 0 }, /unresponsiveMs is 0/],
    [{ master: "a:1\0" }, /NUL/],
    [{ config: "/nonexistent.json" }, /nonexistent\.json/],
  ] as const)
    await rejects(() => resolveMooncakeOptions(options, {}), "ERR_CONFIG", expected);
});

test.run();
