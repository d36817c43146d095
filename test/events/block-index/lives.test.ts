import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { indexAnswers, readIndexedEngine } from "../../../src/conformance/vectors/event-index.js";
import type { JsonObject } from "../../../src/conformance/vectors/handler.js";
import { releaseOfSource } from "../../../src/conformance/vectors/sources.js";
import { BlockIndex } from "../../../src/events/block-index/block-index.js";
import { decodeEventBatch, EventHashes } from "../../../src/events/index.js";

// Lives of real engines: what each answered, and what an index says that heard nothing but their events.

interface Life {
  readonly id: string;
  readonly source: string;
  readonly input: JsonObject;
  readonly expected: readonly number[];
}

interface Step {
  readonly engine?: number;
  readonly events?: string;
  readonly ask?: readonly string[];
  readonly media?: string | readonly string[];
}

const lives: readonly Life[] = readFileSync(join(import.meta.dirname, "../../vectors/kv_index.jsonl"), "utf8")
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => JSON.parse(line));

const decodable = lives.filter(({ input }) => input["report_mode"] !== true);
const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex, "hex"));
const stepsOf = ({ input }: Life) => input["steps"] as unknown as readonly Step[];

/** For each question of a life, whether every group of its engine had published something by then. */
function groupsKnown(life: Life): boolean[] {
  const groups = (life.input["groups"] as readonly unknown[]).length;
  const seen = new Map<number, Set<number>>();
  const known: boolean[] = [];
  for (const { engine = 0, events } of stepsOf(life)) {
    const own = seen.get(engine) ?? new Set();
    seen.set(engine, own);
    if (events === undefined) known.push(own.size === groups);
    else
      for (const event of decodeEventBatch(bytes(events)).events)
        if (event.type === "BlockStored" && event.medium === "GPU") own.add(event.groupIdx ?? 0);
  }
  return known;
}

test("with its groups configured, an index answers what the engine did", () => {
  assert.ok(decodable.length > 100, `${decodable.length} lives`);
  for (const { id, source, input, expected } of decodable)
    assert.equal(indexAnswers(input, releaseOfSource(source)!, true), expected, id);
});

test("with learned groups too, from when each of them has published something", () => {
  let questions = 0;
  for (const life of decodable) {
    const answers = indexAnswers(life.input, releaseOfSource(life.source)!, false);
    for (const [at, known] of groupsKnown(life).entries())
      if (known) {
        questions++;
        assert.is(answers[at], life.expected[at], `${life.id}, question ${at}`);
      }
  }
  assert.ok(questions > 800, `${questions} questions`);
});

test("engines of all shapes and releases live in one index", () => {
  const shapes = decodable.filter(({ input }) => input["block_size"] === 8 && input["kind"] !== "two");
  const index = new BlockIndex({ blockSize: 8, maxEngines: shapes.length });
  for (const { id, source, input } of shapes)
    index.engine(id, readIndexedEngine(input, releaseOfSource(source)!, true));
  // Step by step in turn, so that every engine is asked among the events of all others.
  const answers = new Map<string, number[]>(shapes.map(({ id }) => [id, []]));
  const longest = Math.max(...shapes.map((life) => stepsOf(life).length));
  for (let at = 0; at < longest; at++)
    for (const life of shapes) {
      const step = stepsOf(life)[at];
      if (step?.events !== undefined)
        for (const event of decodeEventBatch(bytes(step.events)).events) index.apply(life.id, event);
      else if (step?.ask !== undefined) {
        const media = [step.media ?? "GPU"].flat();
        const [match] = index.match(EventHashes.from(step.ask.map(bytes)), { media, engines: [life.id] });
        answers.get(life.id)!.push(match?.tokens ?? 0);
      }
    }
  assert.ok(shapes.length > 30, `${shapes.length} shapes`);
  for (const { id, expected } of shapes) assert.equal(answers.get(id), expected, id);
});

test("every explanation says the same as the match, and its rules add up", () => {
  const rules = new Set<string>();
  for (const life of lives) {
    const index = new BlockIndex({ blockSize: life.input["block_size"] as number, capacity: 2 ** 16 });
    const engines = new Set(stepsOf(life).map(({ engine = 0 }) => String(engine)));
    for (const engine of engines)
      index.engine(engine, readIndexedEngine(life.input, releaseOfSource(life.source)!, true));
    for (const { engine = 0, events, ask, media } of stepsOf(life)) {
      if (events !== undefined)
        for (const event of decodeEventBatch(bytes(events)).events) index.apply(String(engine), event);
      if (ask === undefined) continue;
      const hashes = EventHashes.from(ask.map(bytes));
      for (const options of [{ media: [media ?? "GPU"].flat() }, {}, { maxTokens: 17 }]) {
        const explained = index.explain(hashes, String(engine), options);
        const [match] = index.match(hashes, { ...options, engines: [String(engine)] });
        assert.equal([explained.tokens, explained.blocks], [match?.tokens ?? 0, match?.blocks ?? 0], life.id);
        const taken = explained.shortened.reduce((sum, { rule, tokens }) => {
          assert.ok(tokens > 0, `${life.id}: ${rule} takes ${tokens}`);
          rules.add(rule);
          return sum + tokens;
        }, 0);
        if (!options.media?.includes("CPU"))
          assert.is(explained.deviceTokens + taken, explained.maxTokens, life.id);
        assert.ok(explained.tokens >= explained.deviceTokens, life.id);
        for (const { held, blocks, tokens, blockSize, missing } of explained.groups) {
          assert.ok(held <= blocks, life.id);
          assert.ok(tokens <= explained.maxTokens, life.id);
          assert.is(missing === null, Math.floor(tokens / blockSize) >= blocks, life.id);
        }
      }
    }
  }
  assert.equal([...rules].sort(), ["chunk", "eagle", "missing", "state", "step", "window"]);
});

test.run();
