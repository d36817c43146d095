import { suite } from "uvu";
import * as assert from "uvu/assert";
import { SegmentTable } from "../../../src/layout/segment-table.js";
import { type Arena, CODE, type KvStore } from "../../../src/store/index.js";
import { seed } from "../../helpers/property.js";
import { fillPattern } from "../helpers.js";
import { type World, worlds } from "./worlds.js";

// Random interleavings of calls, arenas and closes on each backend; every byte that arrives is compared.

const ROUNDS = 2_000;

/** A store is closed after so many interleavings, in the middle of one, and another is opened. */
const ROUNDS_A_STORE = 250;

const LARGEST = 48 << 10;

const test = suite<{ worlds: World[] }>(`${ROUNDS} interleavings a backend, seed ${seed}`);
test.before(async (context) => {
  context.worlds = await worlds();
});
test.after(async ({ worlds }) => {
  for (const world of worlds) await world[Symbol.asyncDispose]();
});

/** Numbers that look random, the same for every run. */
class Random {
  #state: number;
  constructor(start: number) {
    this.#state = start >>> 0 || 1;
  }
  /** A whole number in [0, `below`). */
  below(below: number): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return (this.#state >>> 0) % below;
  }
}

/** What is stored under a key is a matter of its name: whoever reads can tell. */
function contentOf(key: string): Uint8Array {
  const number = Number(/\d+$/.exec(key)![0]);
  const bytes = new Uint8Array(1 + ((number * 7919) % LARGEST));
  fillPattern(bytes, number);
  return bytes;
}

/** One interleaving: steps are begun without waiting for those before. */
class Round {
  readonly #store: KvStore;
  readonly #world: World;
  readonly #random: Random;
  readonly #keys: readonly string[];
  readonly #running: Promise<void>[] = [];
  readonly #arenas: Arena[] = [];

  constructor(world: World, store: KvStore, random: Random, keys: readonly string[]) {
    this.#world = world;
    this.#store = store;
    this.#random = random;
    this.#keys = keys;
  }

  async run(closing: boolean): Promise<void> {
    const steps = 4 + this.#random.below(8);
    for (let step = 0; step < steps; step++) {
      this.#running.push(this.#step(this.#random.below(10)));
      if (this.#random.below(3) === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    if (closing) this.#running.push(this.#store.close());
    await Promise.all(this.#running);
    await Promise.all(this.#arenas.map((arena) => arena.close()));
  }

  async #step(kind: number): Promise<void> {
    const key = this.#keys[this.#random.below(this.#keys.length)]!;
    if (kind <= 2 && this.#world.writes) return this.#putFrom(key);
    if (kind === 3 && this.#world.writes) return this.#put(key);
    if (kind === 4) return this.#get(key);
    if (kind === 5) return this.#closeOne();
    if (kind === 6) return this.#unregisterOne();
    return this.#getInto(key);
  }

  async #arena(bytes: number): Promise<Arena> {
    const arena = await this.#store.createArena(bytes);
    this.#arenas.push(arena);
    return arena;
  }

  async #putFrom(key: string): Promise<void> {
    const content = contentOf(key);
    const arena = await this.#arena(2 * content.length + 64);
    if (arena.bytes.length === 0) return;
    const { table, places } = scattered(arena, content.length, this.#random);
    let at = 0;
    for (const [offset, size] of places) {
      arena.bytes.set(content.subarray(at, at + size), offset);
      at += size;
    }
    const call = this.#random.below(3) === 0 && this.#world.upserts ? "upsertFrom" : "putFrom";
    const { codes } = await this.#store[call]([key], table);
    this.#expect(Number(codes[0]), [CODE.OK, CODE.INVALID_PARAMS, CODE.ILLEGAL_CLIENT]);
  }

  async #put(key: string): Promise<void> {
    const { codes } = await this.#store.put([key], [contentOf(key)]);
    this.#expect(Number(codes[0]), [CODE.OK]);
  }

  async #get(key: string): Promise<void> {
    const { codes, values } = await this.#store.get([key]);
    const content = contentOf(key);
    this.#expect(Number(codes[0]), [content.length, ...ABSENT]);
    if (values[0]) assert.ok(Buffer.from(values[0]).equals(content), `${this.#world.name}: bytes of ${key}`);
  }

  async #getInto(key: string): Promise<void> {
    const content = contentOf(key);
    const arena = await this.#arena(2 * content.length + 64);
    if (arena.bytes.length === 0) return;
    const { table, places } = scattered(arena, content.length, this.#random);
    const code = Number((await this.#store.getInto([key], table)).codes[0]);
    this.#expect(code, [content.length, CODE.INVALID_PARAMS, ...ABSENT]);
    if (arena.bytes.length === 0) return;
    const found = Buffer.concat(places.map(([offset, size]) => arena.bytes.subarray(offset, offset + size)));
    if (code === content.length) assert.ok(found.equals(content), `${this.#world.name}: bytes of ${key}`);
    else if (code !== CODE.LEASE_EXPIRED)
      assert.ok(
        found.every((byte) => byte === 0),
        `${this.#world.name}: ${code}, but something was written`,
      );
  }

  async #closeOne(): Promise<void> {
    await this.#arenas[this.#random.below(Math.max(1, this.#arenas.length))]?.close();
  }

  async #unregisterOne(): Promise<void> {
    const arena = this.#arenas[this.#random.below(Math.max(1, this.#arenas.length))];
    if (arena) this.#expect(await this.#store.unregisterBuffer(arena.baseAddress), [0, CODE.INVALID_PARAMS]);
  }

  #expect(code: number, allowed: readonly number[]): void {
    assert.ok(allowed.includes(code), `${this.#world.name}: ${code} is none of ${allowed.join(", ")}`);
  }
}

const ABSENT: readonly number[] = [CODE.OBJECT_NOT_FOUND, CODE.REPLICA_IS_NOT_READY, CODE.LEASE_EXPIRED];

/** `size` bytes of an arena in up to 12 pieces, in some order. */
function scattered(
  arena: Arena,
  size: number,
  random: Random,
): { table: SegmentTable; places: (readonly [offset: number, size: number])[] } {
  const count = Math.min(size, 1 + random.below(12));
  const places: (readonly [number, number])[] = [];
  let left = size;
  let offset = random.below(32);
  for (let piece = 0; piece < count; piece++) {
    const bytes = piece === count - 1 ? left : Math.floor(left / (count - piece));
    places.push([offset, bytes]);
    offset += bytes + (random.below(2) === 0 ? 0 : random.below(Math.max(1, Math.floor(size / count))));
    left -= bytes;
  }
  if (random.below(2) === 0) places.reverse();
  const segments = places.map(([at, bytes]) => ({
    address: arena.baseAddress + BigInt(at),
    size: BigInt(bytes),
  }));
  return { table: SegmentTable.fromRows([segments]), places };
}

test("every byte is the right one, whatever is closed under it", async ({ worlds }) => {
  for (const world of worlds) {
    const random = new Random(seed);
    let store: KvStore | undefined;
    let keys: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      store ??= await world.open();
      if (round % 50 === 0) {
        if (world.writes && keys.length > 0) await store.remove(keys, { force: true });
        keys = Array.from(
          { length: 12 },
          (_, i) => `interleaved-${process.pid}-${world.name}-${round * 100 + i}`,
        );
        if (!world.writes) await world.seed(store, keys, keys.map(contentOf));
      }
      const closing = round % ROUNDS_A_STORE === ROUNDS_A_STORE - 1;
      try {
        await new Round(world, store, random, keys).run(closing);
      } catch (error) {
        // Steps that begin after the close.
        if (!(closing && /the store is closed/.test(String(error)))) throw error;
      }
      if (closing) {
        await store.close();
        store = undefined;
      }
    }
    await store?.close();
  }
});

test.run();
