import { readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  type ContractBackend,
  embeddedBackend,
  isContractFile,
  parseScenario,
  pattern,
  runContractFile,
  runContractLines,
} from "../../src/conformance/contract/index.js";
import { sha256 } from "../../src/conformance/contract/pattern.js";
import type { KvStore } from "../../src/store/index.js";

const FILE = "test/vectors/mooncake_contract.jsonl";
const lines: readonly string[] = readFileSync(FILE, "utf8").trimEnd().split("\n");

const named = (id: string): string =>
  lines.find((line) => line.includes(`"id":"${id}"`) || line.includes(`"id": "${id}"`))!;

test("the pattern that the recordings put", () => {
  assert.match(sha256(pattern(11, 1)), /^2b4c342f/);
  assert.match(sha256(pattern(50, 1000)), /^bc82c8c4/);
  assert.is(pattern(884302097, 4097).length, 4097);
});

test("the embedded store does what the real one was recorded doing", async () => {
  const report = await runContractFile(FILE, embeddedBackend);
  assert.equal(report.failures, []);
  assert.is(report.failed, 0);
  const whole = report.otherBackendOnly.filter(({ id }) => !id.includes(".steps["));
  assert.is(report.total, lines.length);
  assert.is(report.passed + whole.length, report.total);
  // What is left to the real backend is about processes, or speaks to a master.
  for (const { id, reason } of whole)
    assert.match(
      reason,
      /^it (kills|freezes|starts|speaks to the process|has several owners|sets a client up against)/,
      id,
    );
  assert.ok(report.passed >= 103, String(report.passed));
  assert.equal(
    new Set(Object.keys(report.deviations)),
    new Set([
      "a crash is a code",
      "foreign memory is refused",
      "every destination of a key is filled",
      "of equal keys the first is stored",
      "an upsert that does not fit keeps the old value",
      "an upsert of no bytes is refused",
      "later effects of these",
    ]),
  );
  assert.ok(report.ops["put_from"]!.total > 400);
});

/** The embedded store, with a fault built in. */
function faulty(fault: (store: KvStore) => Partial<KvStore>): ContractBackend {
  return {
    ...embeddedBackend,
    open: async (setup) => {
      const world = await embeddedBackend.open(setup);
      return new Proxy(world, {
        get: (target, name) => {
          if (name !== "startClient") {
            const value = Reflect.get(target, name, target) as unknown;
            return typeof value === "function" ? value.bind(target) : value;
          }
          return async (client: string) => {
            const started = await target.startClient(client);
            return new Proxy(started, {
              get: (inner, member) => {
                const value = Reflect.get(inner, member, inner) as unknown;
                if (member === "store" && value)
                  return { ...bound(value as KvStore), ...fault(value as KvStore) };
                return typeof value === "function" ? value.bind(inner) : value;
              },
            });
          };
        },
      });
    },
  };
}

function bound(store: KvStore): KvStore {
  const names = [
    "putFrom",
    "put",
    "upsertFrom",
    "upsert",
    "getInto",
    "get",
    "exists",
    "size",
    "replicas",
    "remove",
    "removeByRegex",
    "removeAll",
    "usage",
    "health",
  ] as const;
  return Object.fromEntries(
    names.map((name) => [name, (store[name] as (...args: unknown[]) => unknown).bind(store)]),
  ) as unknown as KvStore;
}

const faults: readonly (readonly [string, string, (store: KvStore) => Partial<KvStore>])[] = [
  [
    "lets everything be removed",
    "lease-grants-500ms",
    (store) => ({ remove: (keys) => store.remove(keys, { force: true }) }),
  ],
  [
    "overwrites existing keys",
    "put-existing-a",
    (store) => ({ putFrom: (keys, rows) => store.upsertFrom(keys, rows) }),
  ],
  ["forgets pins", "upsert-a", (store) => ({ upsert: (keys, values) => store.put(keys, values) })],
  [
    "gives other bytes",
    "basic-4096",
    (store) => ({
      get: async (keys) => {
        const read = await store.get(keys);
        for (const value of read.values) value?.fill(1);
        return read;
      },
    }),
  ],
  [
    "is wrong where a key deviates",
    "batch-duplicates-512",
    (store) => ({
      putFrom: (keys, rows) => store.upsertFrom(keys, rows),
      size: async (keys) => {
        const result = await store.size(keys);
        result.codes.forEach((code, i) => {
          if (code === 512n) result.codes[i] = 514n;
        });
        return result;
      },
    }),
  ],
];

for (const [what, id, fault] of faults)
  test(`a store that ${what} is found out`, async () => {
    const report = await runContractLines("faulty", [named(id)], faulty(fault));
    assert.is(report.failed, 1);
    assert.is(report.failures[0]!.id, id);
    assert.match(report.failures[0]!.path, /^\$\.steps\[\d+\]/);
  });

test("info and unstable steps don't count, unknown ops and broken lines do", async () => {
  const scenario = (steps: readonly object[]): string =>
    JSON.stringify({
      id: "s",
      setup: { segment_bytes: 1 << 24, owner: true, lease_ttl_ms: 1000 },
      runs: 1,
      steps,
    });
  const report = await runContractLines(
    "made up",
    [
      scenario([
        { op: "is_exist", key: "k", rc: 1, info: true },
        { op: "is_exist", key: "k", rc: 1, stable: false, other_runs: [] },
      ]),
      scenario([{ op: "is_exist", key: "k", rc: 1 }]),
      scenario([{ op: "levitate" }]),
      "{",
      scenario([{ op: "kill_master" }]),
      scenario([
        { op: "http", path: "/x", status: 200 },
        { op: "is_exist", key: "k", rc: 0 },
      ]),
    ],
    embeddedBackend,
  );
  assert.equal([report.total, report.passed, report.failed], [6, 2, 3]);
  assert.equal(
    report.failures.map(({ id, path }) => `${id} ${path}`),
    ["s $.steps[0].rc", "s $.steps[0]", "line 4 $"],
  );
  assert.equal(report.otherBackendOnly, [
    { id: "s", reason: "it kills the master" },
    { id: "s.steps[0]", reason: "it has no admin port" },
  ]);
});

test("a line is a scenario or not", async () => {
  assert.is(await isContractFile(FILE), true);
  assert.is(await isContractFile("test/vectors/keys.jsonl"), false);
  assert.is(parseScenario("[]"), undefined);
  assert.is(parseScenario('{"id":"a","setup":{},"steps":[{}]}'), undefined);
  assert.is(parseScenario('{"id":"a","setup":{},"steps":[]}')?.setup.owner, true);
});

test.run();
