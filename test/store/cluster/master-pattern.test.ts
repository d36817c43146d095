import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { masterPattern } from "../../../src/store/cluster/master-pattern.js";
import { searchSteps } from "../../../src/store/cluster/pattern/cost.js";
import { factsOf } from "../../../src/store/cluster/pattern/facts.js";
import { parsePattern } from "../../../src/store/cluster/pattern/parse.js";
import { simplify } from "../../../src/store/cluster/pattern/simplify.js";
import { check, runs } from "../../helpers/property.js";
import { anyKey, anyPattern, asBytes } from "./pattern-arbitraries.js";
import { executePattern } from "./pattern-executor.js";

/** The patterns of the recorded scenarios. */
const recorded: Record<string, string> = {
  ".*": "(?:)",
  K1: "K1",
  "\\d+": "[0-9]",
  "^$": "^$",
  "^a": "^a",
  "^k1$": "^k1$",
  "^k[0-2]$": "^k[0-2]$",
  "^pre-.*": "^pre-",
  a$: "a$",
  "k1{2}": "k1{2}",
  "k1|k2": "k1|k2",
  "k[0-9]+": "k[0-9]",
  nomatch: "nomatch",
  "x+y": "xy",
};

/** Both ends of a search are open. */
const trimmed: Record<string, string> = {
  "": "(?:)",
  "(.)*z": "z",
  "(a*)*b": "b",
  "(a|b|ab)*c": "c",
  ".*.*.*.*z": "z",
  "[^]*x": "x",
  "(a{1,30}){1,30}b": "ab",
  "(((a{1,100}){1,100}){1,100})": "a",
  "(a|b*)c": "c",
  "c(x|y+|zz*)": "c[x-z]",
};

const unlimited: Record<string, string> = {
  "(ab){3}": "(?:ab){3}",
  "^a{2,3}b": "^a{2,3}b",
  "^a{2,}": "^a{2}",
  "a|": "(?:)",
  "(?:a|b|c)d": "[a-c]d",
  "^(?:ab|cd)?e$": "^(?:ab|cd)?e$",
  "\\bk\\B": "\\bk\\B",
  "a+?b": "ab",
  "[\\w-]": "[\\x2d0-9A-Z\\x5fa-z]",
  "[^a-c]": "[^a-c]",
  "\\D": "[^0-9]",
  "\\s$": "[\\x09-\\x0d\\x20]$",
  "[\\d\\D]$": "[^]$",
  "[^]$": "[^]$",
  ".$": ".$",
  "[[-]$": "[\\x2d\\x5b]$",
  "[\\b]": "\\x08",
  "]}": "\\]\\}",
  "\\.\\-\\/\\\\\\ ": "\\.-/\\\\ ",
  é$: "\\xc3\\xa9$",
  "^(?:é)?x$": "^(?:\\xc3\\xa9)?x$",
  "\\xe9\\x41\\u0042": "\\xe9AB",
  "a\0\n\\0\\t": "a\\x00\\x0a\\x00\\x09",
  "@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@": "@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@",
};

const sentAsTold = { ...recorded, ...trimmed, ...unlimited };
for (const [pattern, sent] of Object.entries(sentAsTold))
  test(`${JSON.stringify(pattern)} is sent as ${JSON.stringify(sent)}`, () => {
    assert.equal(masterPattern(pattern), { ok: true, sent });
  });

const limited: readonly (readonly [pattern: string, sent: string, keyLimit: number])[] = [
  ["k.*1$", "^(?![^]{4097})[^]*?k.*1$", 4096],
  ["^k.*1$", "^(?![^]{4097})k.*1$", 4096],
  ["^k.*1|^m.*2", "^(?![^]{4097})(?:^k.*1|^m.*2)", 4096],
  ["(?:^|@)k.*1", "^(?![^]{4097})[^]*?(?:^|@)k.*1", 4096],
  ["k.*1|m.*2", "^(?![^]{4097})[^]*?(?:k.*1|m.*2)", 4096],
  ["^(a|a)*b", "^(?![^]{4097})a*b", 4096],
  ["(x+x+)+y", "^(?![^]{4097})[^]*?xx+y", 4096],
  ["k(ab*){2}", "^(?![^]{4097})[^]*?kab*a", 4096],
  ["^([^@]+@)*x$", "^(?![^]{1025})(?:[^\\x40]+@)*x$", 1024],
  ["^[^@]*@[^@]*@[^@]*@x", "^(?![^]{4097})[^\\x40]*@[^\\x40]*@[^\\x40]*@x", 4096],
  ["^k.*1.*2$", "^(?![^]{2049})k.*1.*2$", 2048],
  ["k.*1.*2$", "^(?![^]{257})[^]*?k.*1.*2$", 256],
  ["a{1000}b", "^(?![^]{2049})[^]*?a{1000}b", 2048],
];

for (const [pattern, sent, keyLimit] of limited)
  test(`${pattern} is sent for keys of up to ${keyLimit} bytes`, () => {
    assert.equal(masterPattern(pattern), { ok: true, sent, keyLimit });
  });

const nested = (depth: number) => `${"(".repeat(depth)}a${")".repeat(depth)}`;
const words = Array.from({ length: 80 }, (_, i) => `${i + 10}`).join("|");

const refused: readonly (readonly [pattern: string, reason: RegExp])[] = [
  ["(", /"\(" at 0 is not closed/],
  ["a(?:b", /"\(" at 1 is not closed/],
  ["[", /"\[" at 0 is not closed/],
  ["[[", /"\[" at 0 is not closed/],
  ["[a", /"\[" at 0 is not closed/],
  ["*", /"\*" at 0 repeats nothing; write \\\*/],
  ["a|+", /"\+" at 2 repeats nothing/],
  ["(?:?)", /"\?" at 3 repeats nothing/],
  ["{1}", /"\{" at 0 repeats nothing/],
  ["a{2", /"\{" at 1 begins no \{n\}/],
  ["a{,2}", /"\{" at 1 begins no \{n\}/],
  ["a{2,1}", /\{2,1\} at 1: the second count is below/],
  ["a{1,100000}", /\{1,100000\} at 1: counts up to 4096/],
  [`a{${"9".repeat(400)},}`, /^\{9{31} at 1: counts up to 4096/],
  ["a**", /two repetitions in a row at 1/],
  ["a+*", /two repetitions in a row/],
  ["a+??", /two repetitions in a row/],
  ["a{40}{2}", /two repetitions in a row/],
  ["^*", /"\^" at 0 can't be repeated/],
  ["\\b+", /can't be repeated/],
  ["a)", /"\)" at 1 closes no group/],
  ["a\\", /ends with a backslash/],
  ["[a\\", /ends with a backslash/],
  ["(?i)K1", /"\(\?i" at 0: a group with flags/],
  ["(?<a>b)", /a group with flags, a name/],
  ["(?", /a group with flags/],
  ["a(?=b)", /"\(\?=" at 1: look-ahead is not sent; allowed are/],
  ["(?!b)", /look-ahead/],
  ["(a)\\1", /back-references/],
  ["\\01", /octal/],
  ["\\x1", /\\x at 0 needs two/],
  ["\\u00e9", /only \\u0000 to \\u007f/],
  ["\\u12", /\\u at 0 needs four/],
  ["\\cA", /no escape/],
  ["\\Z", /no escape/],
  ["\\é", /no escape/],
  ["[]", /matches nothing/],
  ["[]a]", /matches nothing/],
  ["[b-a]", /"b-a" at 1 is no range/],
  ["[a-\\d]", /no range/],
  ["[\\d-a]", /no range/],
  ["[a-z-9]", /"-" at 4 is neither first nor last/],
  ["[[:alpha:]]", /\[: at 1: named classes/],
  ["[é]", /only ASCII is allowed in brackets/],
  ["[\\xe9]", /only ASCII is allowed in brackets/],
  ["é+", /would repeat its last byte only; write \(\?:é\)/],
  ["\ud800", /surrogate/],
  ["a".repeat(4097), /4097 bytes; 4096 are allowed/],
  ["a|".repeat(32_768), /65536 bytes/],
  [nested(33), /more than 32 deep/],
  [nested(2000), /more than 32 deep/],
  ["^(a{1000}){5}$", /about \d+ states, repetitions multiplied out; 4096/],
  ["k(a*)*b", /^\(\?:a\*\)\* repeats endlessly what may be empty/],
  ["^(a|)+b", /repeats endlessly what may be empty/],
  ["^($)+b", /"\(\$\)" at 1 can't be repeated/],
  ["^($|^)+b", /repeats endlessly what may be empty/],
  ["^(a|b|ab)*c", /^\(\?:a\|b\|ab\)\* can match the same bytes in several ways/],
  ["^(x+x+)+y", /several ways/],
  ["^(a?b?c)*(a+){2,}d", /several ways/],
  ["^.*.*.*.*z", /could hold the master for long/],
  [`^${"a?".repeat(30)}${"a".repeat(30)}`, /could hold the master for long/],
  ["^(a{1,30}){1,30}b", /could hold the master for long/],
  [`^(${words})+$`, /could hold the master for long/],
];

for (const [pattern, reason] of refused)
  test(`${JSON.stringify(pattern.slice(0, 40))} is refused`, () => {
    const verdict = masterPattern(pattern);
    assert.not.ok(verdict.ok);
    if (!verdict.ok) assert.match(verdict.reason, reason);
  });

const judged = anyPattern().map((pattern) => ({ pattern, verdict: masterPattern(pattern) }));

test("what is sent is found in the same keys", () => {
  let sent = 0;
  check(
    fc.property(judged, fc.array(anyKey(), { minLength: 5, maxLength: 5 }), ({ pattern, verdict }, keys) => {
      if (!verdict.ok) return;
      sent++;
      const [theirs, ours] = [new RegExp(asBytes(pattern)), new RegExp(verdict.sent)];
      for (const key of keys.map(asBytes))
        assert.is(ours.test(key), theirs.test(key), `${verdict.sent} on ${JSON.stringify(key)}`);
    }),
  );
  assert.ok(sent > runs / 4, `${sent} patterns were sent`);
});

test("libstdc++ takes no more steps and calls than reckoned", () => {
  check(
    fc.property(judged, anyKey(), fc.nat(40), ({ pattern, verdict }, start, more) => {
      if (!verdict.ok) return;
      const node = simplify(parsePattern(pattern));
      const { depth, depthPerByte } = factsOf(node);
      const key = Buffer.from(start + "a".repeat(more));
      // Beginning, end and acceptance of the whole are four more.
      const steps = searchSteps(node, key.length, true) + 4;
      if (steps > 50_000) return;
      const found = new RegExp(verdict.sent).test(key.toString("latin1"));
      for (const inside of [false, true]) {
        const execution = executePattern(node, key, inside);
        const rate = inside ? Math.max(depthPerByte, 2) : depthPerByte;
        assert.is(execution.found, found, "found");
        assert.ok(execution.steps <= steps, `${execution.steps} of ${steps} steps`);
        assert.ok(execution.depth <= depth + rate * key.length + 4, `${execution.depth} calls`);
      }
    }),
  );
});

test("what is sent without a limit is ASCII, and is sent as it is when it comes again", () => {
  check(
    fc.property(judged, ({ verdict }) => {
      if (!verdict.ok) return;
      assert.match(verdict.sent, /^[\x20-\x7e]+$/);
      if (verdict.keyLimit === undefined) assert.equal(masterPattern(verdict.sent), verdict);
    }),
  );
});

test("any text gets a verdict, and what is sent is a pattern", () => {
  const syntax = fc.string({ unit: fc.constantFrom(..."ab1()[]{}^$|\\.*+?:=!-,0x"), maxLength: 20 });
  check(
    fc.property(fc.oneof(fc.string({ unit: "binary" }), syntax), (pattern) => {
      const verdict = masterPattern(pattern);
      if (verdict.ok) new RegExp(verdict.sent);
      else assert.ok(verdict.reason.length > 10 && verdict.reason.length < 500, verdict.reason);
    }),
  );
});

test("a limit counts the bytes of a key", () => {
  const verdict = masterPattern("^k.*1$");
  assert.ok(verdict.ok && verdict.keyLimit === 4096);
  if (!verdict.ok) return;
  const sent = new RegExp(verdict.sent);
  assert.ok(sent.test(`k${"é".repeat(2047)}1`.replaceAll("é", "\xc3\xa9")));
  assert.not.ok(sent.test(`k${"a".repeat(4095)}1`));
});

test("the largest patterns are judged at once", () => {
  const large = [
    "(a|b".repeat(31),
    "a?".repeat(2048),
    "ab|".repeat(1365),
    "(ab|cd)*".repeat(512),
    "[a-z]+@".repeat(585),
  ];
  for (const pattern of large.flatMap((text) => [text, `^${text.slice(0, 4090)}$`])) {
    const started = performance.now();
    masterPattern(pattern);
    assert.ok(
      performance.now() - started < 3000,
      `${pattern.slice(0, 20)}: ${performance.now() - started} ms`,
    );
  }
});

test.run();
