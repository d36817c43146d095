import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import { PythonFloat, pythonRepr, pythonText } from "../../src/python-text.js";
import { runs, seed } from "../helpers/property.js";

// Against CPython's own answers: those that python_text.py recorded, and live ones where a python3 is there.

/** A value as python_text.py writes it. */
type Spec =
  | null
  | boolean
  | string
  | readonly Spec[]
  | { readonly int: string }
  | { readonly float: string }
  | { readonly dict: readonly (readonly [Spec, Spec])[] };

interface Answer {
  readonly value: Spec;
  readonly str: string;
  readonly repr: string;
  /** Characters that this Python does not know, because its Unicode is older than Node's or not. */
  readonly unknown?: string;
}

const folder = new URL(".", import.meta.url);
const answers = JSON.parse(readFileSync(new URL("answers.json", folder), "utf8")) as readonly Answer[];

/** The value of a spec, with the plain types of JavaScript where they can carry it. */
function built(spec: Spec): unknown {
  if (typeof spec !== "object" || spec === null) return spec;
  if (Array.isArray(spec)) return spec.map(built);
  if ("int" in spec) return Number.isSafeInteger(Number(spec.int)) ? Number(spec.int) : BigInt(spec.int);
  if ("float" in spec) return floatOf(spec.float);
  const { dict } = spec as { dict: readonly (readonly [Spec, Spec])[] };
  const entries = dict.map(([name, item]) => [built(name), built(item)] as const);
  const names = entries.map(([name]) => name);
  const object = Object.fromEntries(entries);
  const ordered = names.every(
    (name, index) => typeof name === "string" && Object.keys(object)[index] === name,
  );
  return ordered ? object : new Map(entries);
}

function floatOf(text: string): unknown {
  const value = Number(text.replace("inf", "Infinity"));
  return Number.isSafeInteger(value) && !Object.is(value, -0) ? new PythonFloat(value) : value;
}

test("every recorded answer", () => {
  assert.ok(answers.length > 100);
  for (const { value, str, repr } of answers) {
    const given = built(value);
    assert.is(pythonText(given), str, `str of ${JSON.stringify(value)}`);
    assert.is(pythonRepr(given), repr, `repr of ${JSON.stringify(value)}`);
  }
});

test("the values that JSON has no type for", () => {
  for (const [value, text] of [
    [undefined, "None"],
    [[undefined, 1], "[None, 1]"],
    [new Array(2), "[None, None]"],
    [{ a: undefined, b: 1 }, "{'b': 1}"],
    [1, "1"],
    [new PythonFloat(1), "1.0"],
    [[new PythonFloat(-3)], "[-3.0]"],
    [-0, "-0.0"],
    [2 ** 53, "9007199254740992.0"],
    [2n ** 53n, "9007199254740992"],
    [1e16, "1e+16"],
    [
      new Map<unknown, unknown>([
        [1, "one"],
        [null, 2],
      ]),
      "{1: 'one', None: 2}",
    ],
    [Object.assign(Object.create(null), { a: 1 }), "{'a': 1}"],
  ] as const)
    assert.is(pythonText(value), text);
});

test("what has no text of Python is refused", () => {
  const circle: unknown[] = [];
  circle.push({ circle });
  for (const value of [
    () => 1,
    Symbol("x"),
    new Uint8Array(2),
    new Date(0),
    new Set([1]),
    /x/,
    [[new Uint8Array(1)]],
  ])
    assert.throws(
      () => pythonText(value),
      (error: unknown) => isMooncakeKvError(error, "ERR_CONFIG") && /no value of JSON/.test(error.message),
    );
  assert.throws(
    () => pythonText(circle),
    (error: unknown) => isMooncakeKvError(error, "ERR_CONFIG") && /100 deep/.test(error.message),
  );
});

const PYTHON = process.env["MOONCAKE_KV_PYTHON"] || "python3";
const present = spawnSync(PYTHON, ["--version"]).status === 0;
if (present)
  test("random values, as the python3 of this machine writes them", () => {
    const number = fc.oneof(
      fc.double(),
      fc.double({ min: -1e17, max: 1e17 }),
      fc.integer().map((power) => 10 ** (power % 30)),
      fc.maxSafeInteger(),
    );
    const float = number.map((value) => ({ float: Object.is(value, -0) ? "-0.0" : String(value) }));
    const int = fc.oneof(fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }), fc.integer().map(BigInt));
    const text = fc.oneof(
      fc.string(),
      fc.string({ unit: "binary" }),
      fc.string({ unit: fc.constantFrom("'", '"', "\\", "\n", "\u00ad") }),
    );
    const { spec } = fc.letrec<{ spec: Spec }>((tie) => ({
      spec: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom(null, true, false),
        float,
        int.map((value) => ({ int: String(value) })),
        text,
        fc.array(tie("spec"), { maxLength: 4 }),
        fc
          .uniqueArray(fc.tuple(text, tie("spec")), { maxLength: 4, selector: ([name]) => name })
          .map((dict) => ({ dict })),
      ),
    }));
    const specs = fc.sample(spec, { seed, numRuns: 3 * runs });
    const script = new URL("python_text.py", folder).pathname;
    const { stdout, stderr, status } = spawnSync(PYTHON, [script, "answer"], {
      input: JSON.stringify(specs),
      maxBuffer: 2 ** 28,
      env: { ...process.env, PYTHONIOENCODING: "utf-8" },
    });
    assert.is(status, 0, String(stderr));
    const live = JSON.parse(String(stdout)) as readonly Answer[];
    let compared = 0;
    for (const { value, str, repr, unknown } of live) {
      // A character that one of the two Unicode versions does not know is shown differently.
      if (unknown !== "" || /\p{Cn}/u.test(JSON.stringify(value))) continue;
      compared++;
      const given = built(value);
      assert.is(pythonText(given), str, JSON.stringify(value));
      assert.is(pythonRepr(given), repr, JSON.stringify(value));
    }
    assert.ok(compared > runs, `${compared} of ${live.length} compared`);
  });

test.run();
