import { suite } from "uvu";
import * as assert from "uvu/assert";
import { SegmentTable } from "../../../src/layout/segment-table.js";
import type { MooncakeStore } from "../../../src/store/index.js";
import { rejects } from "../helpers.js";
import { FakeMaster, openFake } from "./fake.js";

// A sidecar whose answers can't be true is not believed: the call rejects, and the sidecar is replaced.

const test = suite<{ master: FakeMaster }>("lies of the sidecar");
test.before(async (context) => {
  context.master = await FakeMaster.start();
});
test.after(({ master }) => master[Symbol.asyncDispose]());

const LIES: Readonly<Record<string, RegExp>> = {
  "no frames": /can't be believed: 0 codes|can't be believed/,
  fewer: /can't be believed: 1 (codes|sizes) where 2 are due|bytes where numbers of 8 are due/,
  more: /can't be believed: 3 codes where 2 are due|bytes where numbers of 8 are due/,
  "odd bytes": /can't be believed: \d+ bytes where numbers of/,
  "a length of 4 GiB": /can't be read: a message of 4294967295 bytes/,
  "a frame beyond its message": /can't be read: a frame is longer than its message/,
  "another request": /can't be read: it answers request 4294967295, which nobody made/,
  "much more than was asked for": /can't be read: a message of 8\d+ bytes, where \d+ are due at most/,
};

type Call = (store: MooncakeStore, keys: string[], rows: SegmentTable) => Promise<unknown>;

const CALLS: Readonly<Record<string, Call>> = {
  exists: (store, keys) => store.exists(keys),
  size: (store, keys) => store.size(keys),
  put: (store, keys) => store.put(keys, [Uint8Array.of(1), Uint8Array.of(2)]),
  putFrom: (store, keys, rows) => store.putFrom(keys, rows),
  getInto: (store, keys, rows) => store.getInto(keys, rows),
};

for (const [name, call] of Object.entries(CALLS))
  test(name, async ({ master }) => {
    await using store = await openFake(master);
    await using arena = await store.createArena(8192);
    const rows = SegmentTable.fromRows(
      [0n, 4096n].map((offset) => [{ address: arena.baseAddress + offset, size: 10n }]),
    );
    let restarts = 0;
    for (const [lie, message] of Object.entries(LIES)) {
      const before = process.memoryUsage().arrayBuffers;
      await rejects(() => call(store, ["a", `lie ${lie}`], rows), "ERR_STORE", message);
      assert.ok(process.memoryUsage().arrayBuffers - before < 64 << 20, lie);
      assert.is((await store.exists(["b"])).codes[0], 0, lie);
      assert.is(store.sidecarRestarts, ++restarts, lie);
    }
  });

test("a code that no write has is not taken for success", async ({ master }) => {
  await using store = await openFake(master);
  for (const call of [CALLS["put"]!, CALLS["exists"]!])
    await rejects(
      () => call(store, ["a", "lie a code above all"], SegmentTable.fromRows([])),
      "ERR_STORE",
      /can't be believed: a code of 7, which is above [01]/,
    );
});

test.run();
