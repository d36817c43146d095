import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import { modelBasename, modelNameWarnings } from "../../src/key/model-name.js";
import { formatParsedKey, parseKey } from "../../src/key/parse-key.js";
import { PoolKey } from "../../src/key/pool-key.js";
import { parsingInvertsFormatting, parsingNeverCrashes } from "../../src/testing/laws/key-laws.js";
import { check } from "../helpers/property.js";

const ours = (pattern: RegExp) => (error: unknown) =>
  isMooncakeKvError(error, "ERR_KEY") && pattern.test(error.message);
const hash = "0123456789abcdef".repeat(4);
const ranks = "@tp_rank:3@pcp0@dcp1@pp_rank:2@group:4";

test("a plain key", () => {
  assert.equal(parseKey(`Qwen3-8B${ranks}@${hash}`), {
    head: "Qwen3-8B",
    parts: { cachePrefix: "", modelName: "Qwen3-8B", storeNamespace: "" },
    candidates: [{ cachePrefix: "", modelName: "Qwen3-8B", storeNamespace: "" }],
    configFingerprint: undefined,
    tpRank: 3,
    pcpRank: 0,
    dcpRank: 1,
    ppRank: 2,
    groupId: 4,
    chunkHash: hash,
  });
});

test("a prefix and a model that both hold an @ are ambiguous, and certain once the model is given", () => {
  const key = new PoolKey(
    { modelName: "Qwen3@v2", cachePrefix: "team@a", tpRank: 3, dcpRank: 1, ppRank: 2, groupId: 4 },
    hash,
  ).toString();
  const parsed = parseKey(key);
  assert.is(parsed.head, "team@a@Qwen3@v2");
  assert.is(parsed.parts, undefined);
  assert.equal(
    parsed.candidates.map(({ cachePrefix, modelName }) => [cachePrefix, modelName]),
    [
      ["", "team@a@Qwen3@v2"],
      ["team", "a@Qwen3@v2"],
      ["team@a", "Qwen3@v2"],
      ["team@a@Qwen3", "v2"],
    ],
  );
  assert.is(formatParsedKey(parsed), key);
  const known = parseKey(key, { modelName: "Qwen3@v2" });
  assert.equal(known.parts, { cachePrefix: "team@a", modelName: "Qwen3@v2", storeNamespace: "" });
  assert.equal([known.tpRank, known.pcpRank, known.dcpRank, known.ppRank, known.groupId], [3, 0, 1, 2, 4]);
});

test("an @ before the model needs a prefix before it", () => {
  assert.throws(
    () => parseKey(`@m${ranks}@${hash}`, { modelName: "m" }),
    ours(/does not stand in its head "@m"/),
  );
  assert.is(parseKey(`@@m${ranks}@${hash}`, { modelName: "m" }).parts?.cachePrefix, "@");
});

test("separators of other products mean nothing", () => {
  const { head, parts } = parseKey(`a%2Fb-SEP-c${ranks}@${hash}`);
  assert.equal([head, parts?.modelName], ["a%2Fb-SEP-c", "a%2Fb-SEP-c"]);
});

test("a store namespace is part of the head and recognised by its form", () => {
  for (const namespace of ["@store_tp:4@store_pp:1@store_format:lbhnc_v1", "@store_pp:2@store_format:x"]) {
    const parsed = parseKey(`m${namespace}${ranks}@${hash}`);
    assert.equal(parsed.parts, { cachePrefix: "", modelName: "m", storeNamespace: namespace });
    assert.is(parsed.head, `m${namespace}`);
  }
  const prefixed = parseKey(`p@m@store_pp:2@store_format:x${ranks}@${hash}`);
  assert.is(prefixed.candidates.length, 2);
  assert.ok(
    prefixed.candidates.every(({ storeNamespace }) => storeNamespace === "@store_pp:2@store_format:x"),
  );
});

test("a head that is nothing but a namespace is read as a model", () => {
  const { candidates } = parseKey(`@store_pp:2@store_format:x${ranks}@${hash}`);
  assert.equal(candidates[0], {
    cachePrefix: "",
    modelName: "@store_pp:2@store_format:x",
    storeNamespace: "",
  });
});

test("the generation with a config fingerprint", () => {
  const key = `p@m@cfg:0123456789ab${ranks}@${hash}`;
  const parsed = parseKey(key, { modelName: "m" });
  assert.equal(
    [parsed.head, parsed.configFingerprint, parsed.parts?.cachePrefix],
    ["p@m", "0123456789ab", "p"],
  );
  assert.is(formatParsedKey(parsed), key);
  const changed = parseKey(key.replace("0123456789ab", "ba9876543210"));
  assert.is.not(changed.configFingerprint, parsed.configFingerprint, "a changed setting is another key");
  for (const odd of ["@cfg:0123456789AB", "@cfg:0123", "@cfg:0123456789abc", "@cfg:"])
    assert.is(parseKey(`m${odd}${ranks}@${hash}`).configFingerprint, undefined, odd);
});

test("keys of the first months have no group", () => {
  const key = `m@tp_rank:0@pcp0@dcp0@pp_rank:0@${hash}`;
  const parsed = parseKey(key);
  assert.equal([parsed.groupId, parsed.head], [undefined, "m"]);
  assert.is(formatParsedKey(parsed), key);
});

test("a head that looks like ranks stays in the head", () => {
  const parsed = parseKey(`m@tp_rank:9@pcp9@dcp9@pp_rank:9@group:9${ranks}@${hash}`);
  assert.equal([parsed.head, parsed.tpRank], ["m@tp_rank:9@pcp9@dcp9@pp_rank:9@group:9", 3]);
});

test("a model that occurs twice in the head is told with every reading", () => {
  const parsed = parseKey(`m@m${ranks}@${hash}`, { modelName: "m" });
  assert.is(parsed.parts, undefined);
  assert.equal(parsed.candidates, [
    { cachePrefix: "", modelName: "m", storeNamespace: "@m" },
    { cachePrefix: "m", modelName: "m", storeNamespace: "" },
  ]);
});

const refused: readonly [string, string, RegExp][] = [
  ["nothing", "", /must end with @ and the block hash/],
  ["a word", "hello", /must end with @/],
  ["upper-case hex", `m${ranks}@${hash.toUpperCase()}`, /lower-case hex, not "0123/],
  ["odd hex", `m${ranks}@${hash}0`, /lower-case hex/],
  ["no hash", `m${ranks}@`, /lower-case hex, not ""/],
  ["a hash with a line break behind it", `m${ranks}@${hash}\n`, /lower-case hex/],
  ["no ranks", `m@${hash}`, /ranks before the hash/],
  ["ranks in another order", `m@pcp0@tp_rank:0@dcp0@pp_rank:0@group:0@${hash}`, /ranks before the hash/],
  ["a rank with a leading zero", `m@tp_rank:00@pcp0@dcp0@pp_rank:0@group:0@${hash}`, /number "00"/],
  ["a rank of minus zero", `m@tp_rank:-0@pcp0@dcp0@pp_rank:0@group:0@${hash}`, /number "-0"/],
  ["a rank above 2^53", `m@tp_rank:9007199254740993@pcp0@dcp0@pp_rank:0@group:0@${hash}`, /9007199254740993/],
  ["no model", `${ranks}@${hash}`, /model is missing/],
  ["a fingerprint alone", `@cfg:0123456789ab${ranks}@${hash}`, /model is missing/],
];
for (const [name, key, message] of refused)
  test(`${name} is no key`, () => {
    assert.throws(() => parseKey(key), ours(message));
  });

test("what is not a text is no key", () => {
  for (const value of [undefined, null, 5, {}])
    assert.throws(() => parseKey(value as never), ours(/a key is a string/));
});

test("a model that is not in the head, or no model, is refused", () => {
  const key = `team@Qwen3${ranks}@${hash}`;
  for (const modelName of ["Qwen", "wen3", "am@Qwen3", "Llama"])
    assert.throws(
      () => parseKey(key, { modelName }),
      ours(/does not stand in its head "team@Qwen3"/),
      modelName,
    );
  assert.throws(() => parseKey(key, { modelName: "" }), ours(/modelName "" names no model/));
});

test("a very long head is read at once", () => {
  const started = performance.now();
  const { candidates } = parseKey(`${"@".repeat(20_000)}m${ranks}@${hash}`);
  assert.is(candidates.length, 20_000);
  assert.ok(performance.now() - started < 2_000);
});

test("the model segment is the last part of the path", () => {
  const names = [
    ["Qwen/Qwen3-8B", "Qwen3-8B"],
    ["/data/models/Qwen3-8B", "Qwen3-8B"],
    ["/data/models/Qwen3-8B///", "Qwen3-8B"],
    ["/hub/models--Qwen--Qwen3-8B/snapshots/0123abcd", "0123abcd"],
    ["orgA/m", "m"],
    ["orgB/m", "m"],
    ["m", "m"],
    ["a\\b", "a\\b"],
  ];
  for (const [path, name] of names) assert.is(modelBasename(path!), name, path);
  for (const path of ["", "/", "///", undefined, 5])
    assert.throws(() => modelBasename(path as string), ours(/has no last path component/));
});

test("a snapshot id and a cut path are warned about, a plain name is not", () => {
  assert.match(
    modelNameWarnings("/hub/models--x/snapshots/0123abcd").join(),
    /"0123abcd" looks like a snapshot id/,
  );
  assert.match(modelNameWarnings("orgA/m").join(), /only "m" .*different cache prefixes/);
  assert.equal(modelNameWarnings("m"), []);
});

test("law: parsing inverts formatting, for any texts and ranks, both generations", () =>
  check(parsingInvertsFormatting()));
test("law: any text is either written back as it was or refused", () => check(parsingNeverCrashes()));

test.run();
