import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { MooncakeCluster, type PythonClient } from "../../../src/conformance/contract/mooncake/cluster.js";
import { masterPattern } from "../../../src/store/cluster/master-pattern.js";
import { findMooncake } from "../../helpers/mooncake-wheel.js";
import { seed } from "../../helpers/property.js";
import { anyKey, anyPattern, asBytes } from "./pattern-arbitraries.js";

// What masterPattern lets through, on masters of the tests' own: it finds the keys that it should, and the master lives.

const installation = findMooncake();
const MIB = 1 << 20;

/** Long enough for a loaded machine; a master in exponential time needs years. */
const PATIENCE_MS = 30_000;
const NEXT_CALL_MS = 2_000;

async function within<T>(ms: number, what: string, answer: Promise<T>): Promise<T> {
  const late = new AbortController();
  const limit = sleep(ms, undefined, { signal: late.signal }).then(
    () => Promise.reject(new Error(`${what}: no answer in ${ms} ms`)),
    () => new Promise<never>(() => {}),
  );
  return Promise.race([answer, limit]).finally(() => late.abort());
}

/** Keys in a master, and what a pattern removes of them; they are back afterwards. */
class Keys {
  readonly #client: PythonClient;
  readonly #keys: readonly string[];

  constructor(client: PythonClient, keys: readonly string[]) {
    this.#client = client;
    this.#keys = keys;
  }

  async put(keys: readonly string[] = this.#keys): Promise<void> {
    for (const key of keys) assert.equal(await this.#client.call("batch_put_from", [key], [0], [8]), [0]);
  }

  /** @throws an assertion where the master finds other keys than JavaScript does. */
  async remove(pattern: string): Promise<void> {
    const verdict = masterPattern(pattern);
    if (!verdict.ok) return;
    const name = verdict.sent.slice(0, 60);
    const sent = new RegExp(verdict.sent);
    const expected = this.#keys.filter((key) => sent.test(asBytes(key)));
    const removed = await within(
      PATIENCE_MS,
      name,
      this.#client.call<number>("remove_by_regex", verdict.sent, true),
    );
    const exists = await within(
      NEXT_CALL_MS,
      `is_exist after ${name}`,
      this.#client.call("is_exist", "none"),
    );
    assert.is(exists, 0);
    assert.is(removed, expected.length, name);
    for (const key of expected) assert.is(await this.#client.call("is_exist", key), 0, name);
    await this.put(expected);
  }
}

const long = (text: string, bytes: number) => text.repeat(Math.ceil(bytes / text.length)).slice(0, bytes);

/** Keys on which backtracking is at its worst, among them the longest that a limit lets through. */
const worstKeys = [
  long("a", MIB),
  long("ab", MIB),
  `k${long("1", MIB - 1)}`,
  long("a", 200 << 10),
  long("\n", 200 << 10),
  long("x", 30_000),
  ...[4096, 2048, 1024, 512, 256].flatMap((limit) => [
    long("a", limit),
    long("k1", limit),
    long("k12", limit),
    long("a@", limit),
    long("a", limit + 1),
  ]),
  "a".repeat(43),
  `${"x".repeat(43)}y`,
  "a\nb",
  "\n",
  "\x01\x7f",
  "nul\0nul",
  "ключ é",
];

const nested = (depth: number) => `${"(".repeat(depth)}a${")".repeat(depth)}`;
const ended = (pattern: string) => [pattern, `^${pattern}`, `k${pattern}`, `${pattern}$`, `^${pattern}$`];

const attacks = [
  "(.)*z",
  "(a*)*b",
  "(a+)+b",
  "(a|a)*b",
  "(a|b|ab)*c",
  "(x+x+)+y",
  `${"a?".repeat(30)}${"a".repeat(30)}`,
  `${"a?".repeat(12)}${"a".repeat(12)}b`,
  "(a{1,30}){1,30}b",
  ".*.*.*.*z",
  ".*.*z",
  "1.*2.*z",
  "[^]*x",
  "a{1,100000}",
  "a{1,1000}b",
  "a{1000}b",
  `${"a".repeat(62)}b`,
  `${"a".repeat(4000)}b`,
  "(((a{1,100}){1,100}){1,100})",
  "(a|b|cd)*e",
  "([^@]+@)*z",
  "(?:[^@]*@){3}z",
  "(?:ab?c?)*z",
  "(?:a(?:a(?:a(?:a|b)|b)|b)|b)+z",
  "a|".repeat(32_768),
  `${"ab|".repeat(30)}z`,
  `${Array.from({ length: 1000 }, (_, i) => i + 1000).join("|")}`,
  nested(32),
  nested(20_000),
  "[a-z]".repeat(800),
  "(a)\\1",
  "a(?=b)",
  "(?!a)",
  "\\b(a\\b|a)*",
].flatMap(ended);

const texts = [
  "",
  "\0",
  "\x01\x7f",
  "\n",
  "\r",
  "nul\0",
  "\\x00n",
  "\\n$",
  "é$",
  "кл.*é",
  "\ud800",
  "a\udfff",
  "\\xc3\\xa9",
];
const sets = ["[^]", "[^\\x00-\\x7e]", "[\\x00-\\x1f]", "\\W$", "\\S$", "[\\s-]$", "(\\xd0|\\xc3|b)$"];

const cases: Record<string, () => Promise<void>> = {
  "no pattern that is sent harms a master": async () => {
    await using cluster = await MooncakeCluster.start(installation!, { segmentBytes: 16 * MIB });
    await using client = await cluster.startClient();
    const keys = new Keys(client, worstKeys);
    await keys.put();
    for (const pattern of [...attacks, ...texts, ...sets]) await keys.remove(pattern);
    await using another = await cluster.startClient();
    assert.is(await another.call("is_exist", "a\nb"), 1);
  },

  "what is sent finds the same keys in a master as in JavaScript": async () => {
    await using cluster = await MooncakeCluster.start(installation!, { segmentBytes: 16 * MIB });
    await using client = await cluster.startClient();
    const sampled = fc.sample(anyKey(), { seed, numRuns: 60 }).filter((key) => key !== "");
    const keys = new Keys(client, [...new Set(["k1", "k2", "k11", "pre-1", "K1", "xy", "xxy", ...sampled])]);
    await keys.put();
    const recorded = ["^k[0-2]$", "^pre-.*", "k.*1$", "k1{2}", "k1|k2", "k[0-9]+", "x+y", "\\d+", "a$", "K1"];
    for (const pattern of [...recorded, ...fc.sample(anyPattern(), { seed, numRuns: 400 })])
      await keys.remove(pattern);
  },
};

for (const [name, run] of Object.entries(cases)) if (installation) test(name, run);
if (!installation)
  test("without the wheel there is no master", () => {
    assert.is(installation, undefined);
  });

test.run();
