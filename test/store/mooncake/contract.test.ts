import { readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  type ContractScenario,
  parseScenario,
  runScenario,
} from "../../../src/conformance/contract/index.js";
import { mooncakeBackend } from "../../../src/conformance/contract/mooncake/world.js";
import { installation } from "./setup.js";

// Every recorded scenario against the real Mooncake, through the sidecar. Most of the time is waiting: several at a time.

const LANES = 3;

/** The recordings come from an idle machine. On a busy one a lease may run out early, or a round of eviction come late. */
const ATTEMPTS = 3;

const words = process.argv.slice(2);

const scenarios = readFileSync(new URL("../../vectors/mooncake_contract.jsonl", import.meta.url), "utf8")
  .split("\n")
  .map(parseScenario)
  .filter((scenario): scenario is ContractScenario => scenario !== undefined)
  .filter(({ id }) => words.length === 0 || words.some((word) => id.includes(word)));

if (installation) {
  const backend = mooncakeBackend(installation);
  const outcomes = new Map<string, Promise<unknown>>();
  const queue = [...scenarios];
  const runOne = async (scenario: ContractScenario): Promise<void> => {
    let failure: unknown;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      ({ failure } = await runScenario(scenario, backend));
      if (failure === undefined) return;
    }
    assert.unreachable(JSON.stringify(failure));
  };
  const lane = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const started = start.get(next.id)!;
      started(runOne(next));
      await outcomes.get(next.id)!.catch(() => {});
    }
  };
  const start = new Map<string, (run: Promise<void>) => void>();
  for (const { id } of scenarios) outcomes.set(id, new Promise<void>((resolve) => start.set(id, resolve)));
  for (const outcome of outcomes.values()) outcome.catch(() => {});
  test.before(() => {
    for (let i = 0; i < LANES; i++) lane();
  });
  for (const { id } of scenarios)
    test(id, async () => {
      await outcomes.get(id);
    });
} else
  test("the file of scenarios is there, for where the wheel is", () => {
    assert.ok(scenarios.length > 100);
  });

test.run();
