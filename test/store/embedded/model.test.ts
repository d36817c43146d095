import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { openEmbeddedTestStore } from "../../../src/conformance/embedded-test-store.js";
import type { Arena, EmbeddedStore } from "../../../src/store/index.js";
import { checkAsync } from "../../helpers/property.js";
import { fillPattern, segmentsIn } from "../helpers.js";

const HALF = 1 << 16;
const TTL = 100;
const KEYS = ["", "a", "b", "c", "\0", "ü"];

type Row = readonly (readonly [offset: number, size: number])[];
type Op = "putFrom" | "upsertFrom" | "getInto" | "get" | "exists" | "size" | "remove" | "removeAll" | "wait";

/** A call with a batch of keys; those that move no bytes ignore the rows. */
interface Step {
  readonly op: Op;
  readonly batch: readonly { readonly key: string; readonly row: Row }[];
  readonly force: boolean;
  readonly ms: number;
}

const row: fc.Arbitrary<Row> = fc.array(
  fc.tuple(fc.integer({ min: 0, max: HALF - 5000 }), fc.constantFrom(0, 1, 17, 1000, 4096)),
  { maxLength: 3 },
);
const OPS: readonly Op[] = [
  "putFrom",
  "putFrom",
  "upsertFrom",
  "getInto",
  "getInto",
  "get",
  "exists",
  "size",
  "remove",
  "removeAll",
  "wait",
];
const step: fc.Arbitrary<Step> = fc.record({
  op: fc.constantFrom(...OPS),
  batch: fc.array(fc.record({ key: fc.constantFrom(...KEYS), row }), { maxLength: 4 }),
  force: fc.boolean(),
  ms: fc.integer({ min: 0, max: 2 * TTL }),
});

const bytesOf = (segments: Row): number => segments.reduce((sum, [, size]) => sum + size, 0);

/** The sizes of a row, laid out in the second half with gaps of three bytes. */
function spread(segments: Row): Row {
  let next = HALF;
  return segments.map(([, size]) => {
    const offset = next;
    next += size + 3;
    return [offset, size] as const;
  });
}

/** What the store must do, said once more with a Map. */
class Model {
  readonly #objects = new Map<string, { value: Buffer; lease: number }>();
  now = 0;

  put(name: string, value: Buffer): number {
    if (name === "" || value.length === 0) return -600;
    if (!this.#objects.has(name)) this.#objects.set(name, { value, lease: 0 });
    return 0;
  }

  upsert(name: string, value: Buffer, done: Set<string>): number {
    if (name === "" || value.length === 0) return -600;
    const old = this.#objects.get(name);
    // Only bytes of the same size take the place of the old ones, and so keep the lease.
    const lease = old?.value.length === value.length ? old.lease : 0;
    if (!done.has(name)) this.#objects.set(name, { value, lease });
    done.add(name);
    return 0;
  }

  /** Reads, and so grants the lease. */
  get(name: string): Buffer | undefined {
    const object = this.#objects.get(name);
    if (object) object.lease = this.now + TTL;
    return object?.value;
  }

  getCode(name: string, size: number): bigint {
    const value = this.get(name);
    if (!value) return -704n;
    return size === value.length ? BigInt(size) : size < value.length ? -600n : -800n;
  }

  remove(name: string, force: boolean): number {
    const object = this.#objects.get(name);
    if (!object) return -704;
    if (!force && object.lease > this.now) return -706;
    this.#objects.delete(name);
    return 0;
  }

  removeAll(force: boolean): number {
    return [...this.#objects.keys()].filter((name) => this.remove(name, force) === 0).length;
  }
}

/** Makes the call on the store and on the model, and compares. */
async function run(step: Step, store: EmbeddedStore, arena: Arena, model: Model): Promise<void> {
  const { op, batch, force, ms } = step;
  const names = batch.map(({ key }) => key);
  const rows = batch.map((entry) => entry.row);
  if (op === "putFrom") {
    const expected = batch.map((entry) => model.put(entry.key, joined(arena, entry.row)));
    assert.equal([...(await store.putFrom(names, segmentsIn(arena, rows))).codes], expected);
  } else if (op === "upsertFrom") {
    const done = new Set<string>();
    const expected = batch.map((entry) => model.upsert(entry.key, joined(arena, entry.row), done));
    assert.equal([...(await store.upsertFrom(names, segmentsIn(arena, rows))).codes], expected);
  } else if (op === "getInto") {
    for (const entry of batch) {
      arena.bytes.fill(0xee, HALF);
      const target = spread(entry.row);
      const { codes } = await store.getInto([entry.key], segmentsIn(arena, [target]));
      const expected = model.getCode(entry.key, bytesOf(entry.row));
      assert.is(codes[0], expected);
      const written = joined(arena, target);
      if (expected >= 0n) assert.ok(written.equals(model.get(entry.key)!));
      else assert.ok(written.every((byte) => byte === 0xee));
    }
  } else if (op === "get") {
    const { codes, values } = await store.get(names);
    const expected = names.map((name) => model.get(name));
    assert.equal(
      [...codes],
      expected.map((value) => BigInt(value?.length ?? -704)),
    );
    assert.ok(expected.every((value, i) => (value ? value.equals(values[i]!) : values[i] === undefined)));
  } else if (op === "exists") {
    const expected = names.map((name) => (model.get(name) ? 1 : 0));
    assert.equal([...(await store.exists(names)).codes], expected);
  } else if (op === "size") {
    const expected = names.map((name) => BigInt(model.get(name)?.length ?? -704));
    assert.equal([...(await store.size(names)).codes], expected);
  } else if (op === "remove") {
    const expected = names.map((name) => model.remove(name, force));
    assert.equal([...(await store.remove(names, { force })).codes], expected);
  } else if (op === "removeAll") {
    assert.is(await store.removeAll({ force }), model.removeAll(force));
  } else {
    store.advanceClock(ms);
    model.now += ms;
  }
}

function joined(arena: Arena, segments: Row): Buffer {
  return Buffer.concat(segments.map(([offset, size]) => arena.bytes.subarray(offset, offset + size)));
}

test("any sequence of calls does what a Map would", () =>
  checkAsync(
    fc.asyncProperty(fc.array(step, { maxLength: 16 }), async (steps) => {
      await using store = openEmbeddedTestStore({
        capacity: "2MiB",
        clock: "manual",
        defaultKvLeaseTtl: TTL,
      });
      await using arena = await store.createArena(2 * HALF);
      fillPattern(arena.bytes.subarray(0, HALF), 3);
      const model = new Model();
      for (const one of steps) await run(one, store, arena, model);
    }),
  ));

test.run();
