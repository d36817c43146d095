import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Arena, type KvStore, openStore } from "../../../src/store/index.js";
import { checkAsync } from "../../helpers/property.js";
import { fillPattern, segmentsIn } from "../helpers.js";

const HALF = 1 << 16;
const KEYS = ["", "a", "b", "c", "\0", "ü"];

type Row = readonly (readonly [offset: number, size: number])[];

/** A call with a batch of keys; those that move no bytes ignore the rows. */
interface Step {
  readonly op: "putFrom" | "getInto" | "exists" | "size" | "remove";
  readonly batch: readonly { readonly key: string; readonly row: Row }[];
}

const row: fc.Arbitrary<Row> = fc.array(
  fc.tuple(fc.integer({ min: 0, max: HALF - 5000 }), fc.constantFrom(0, 1, 17, 1000, 4096)),
  { maxLength: 3 },
);
const step: fc.Arbitrary<Step> = fc.record({
  op: fc.constantFrom("putFrom", "putFrom", "getInto", "getInto", "exists", "size", "remove"),
  batch: fc.array(fc.record({ key: fc.constantFrom(...KEYS), row }), { maxLength: 4 }),
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
  readonly #objects = new Map<string, Buffer>();

  put(name: string, value: Buffer): number {
    if (name === "" || value.length === 0) return -600;
    if (!this.#objects.has(name)) this.#objects.set(name, value);
    return 0;
  }

  get(name: string): Buffer | undefined {
    return this.#objects.get(name);
  }

  getCode(name: string, size: number): bigint {
    const value = this.#objects.get(name);
    if (!value) return -704n;
    return size === value.length ? BigInt(size) : size < value.length ? -600n : -800n;
  }

  remove(name: string): number {
    return this.#objects.delete(name) ? 0 : -704;
  }
}

/** Makes the call on the store and on the model, and compares. */
async function run({ op, batch }: Step, store: KvStore, arena: Arena, model: Model): Promise<void> {
  const names = batch.map(({ key }) => key);
  if (op === "putFrom") {
    const rows = batch.map((entry) => entry.row);
    const expected = batch.map((entry) => model.put(entry.key, joined(arena, entry.row)));
    assert.equal([...(await store.putFrom(names, segmentsIn(arena, rows))).codes], expected);
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
  } else if (op === "exists") {
    const expected = names.map((name) => (model.get(name) ? 1 : 0));
    assert.equal([...(await store.exists(names)).codes], expected);
  } else if (op === "size") {
    const expected = names.map((name) => BigInt(model.get(name)?.length ?? -704));
    assert.equal([...(await store.size(names)).codes], expected);
  } else {
    const expected = names.map((name) => model.remove(name));
    assert.equal([...(await store.remove(names)).codes], expected);
  }
}

function joined(arena: Arena, segments: Row): Buffer {
  return Buffer.concat(segments.map(([offset, size]) => arena.bytes.subarray(offset, offset + size)));
}

test("any sequence of calls does what a Map would", () =>
  checkAsync(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      await using store = await openStore("embedded:?capacity=1MiB");
      await using arena = await store.createArena(2 * HALF);
      fillPattern(arena.bytes.subarray(0, HALF), 3);
      const model = new Model();
      for (const one of steps) await run(one, store, arena, model);
    }),
  ));

test.run();
