import assert from "node:assert/strict";
import { test } from "uvu";
import { seed } from "../helpers/property.js";
import { VirtualClock } from "./model/clock.js";
import { ModelEngine } from "./model/engine.js";
import { Random } from "./model/random.js";
import type { Seen } from "./model/world.js";

// Random engines over a store that fails, hangs, lies and throws, with loggers, fences and lookup clients of the same kind.

/** Lives of an engine, and the steps of each before its last requests end. */
const LIVES = 50;
const STEPS = 200;

const seen: Seen = new Map();

test(`no event breaks a connector: ${LIVES} lives of ${STEPS} steps and more, seed ${seed}`, async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  process.on("unhandledRejection", note);
  try {
    for (let life = 0; life < LIVES; life++) {
      using clock = new VirtualClock();
      const engine = new ModelEngine(clock, new Random(seed + life), seen);
      let steps = 0;
      try {
        engine.storm = true;
        await engine.register();
        for (; steps < STEPS; steps++) {
          // Calm after every storm, so that there is something to lose.
          engine.storm = steps % 100 < 70;
          await engine.step(true);
          assert.deepEqual(unhandled, [], "a rejection that nobody handles");
        }
        engine.storm = life % 2 === 0;
        if (life % 5 === 4) await engine.breakOff();
        for (; engine.open > 0; steps++) await engine.step(false);
        await engine.end();
        assert.deepEqual(unhandled, [], "a rejection that nobody handles");
      } catch (error) {
        const what = error instanceof Error ? error.message : String(error);
        throw new Error(`life ${life}, step ${steps}, FAST_CHECK_SEED=${seed}: ${what}`, { cause: error });
      }
      seen.set("steps", (seen.get("steps") ?? 0) + steps);
    }
  } finally {
    process.off("unhandledRejection", note);
  }
});

test("the model has seen what it is about", () => {
  const least: Readonly<Record<string, number>> = {
    steps: 10_000,
    requests: 1_000,
    "blocks filled": 1_000,
    "whole loads": 200,
    "loads with losses": 100,
    "aborted loads": 20,
    preemptions: 100,
    events: 500,
    resets: 5,
    "failed resets": 5,
    "reports refused": 200,
    "lookups: hits": 300,
    "lookups: failed": 100,
    "lookups: refused": 50,
    "lookups: unanswered": 50,
    "store: hang": 100,
    "store: late": 100,
    "store: lie": 200,
    "store: overdue": 100,
    "engines closed in the middle": 5,
  };
  for (const [what, count] of Object.entries(least))
    assert.ok((seen.get(what) ?? 0) >= count, `${what}: ${seen.get(what)}, and ${count} are needed`);
});

test.run();
