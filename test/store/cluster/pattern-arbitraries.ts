import fc from "fast-check";

const COUNTS = ["*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}", "*?", "+?", "{0}"];
const ATOMS = ["a", "b", "1", "@", ".", "[^]", "[ab]", "[^a]", "\\d", "\\W", "\\s", "\\x61", "[b-]", "é"];
const PLACES = ["^", "$", "\\b", "\\B"];

/** Patterns of what masterPattern knows, in any order: many are sent, some are refused. */
export function anyPattern(): fc.Arbitrary<string> {
  const depth = fc.createDepthIdentifier();
  return fc.letrec<{ pattern: string; sequence: string; term: string; atom: string }>((tie) => ({
    pattern: fc.oneof(
      { weight: 3, arbitrary: tie("sequence") },
      { weight: 1, arbitrary: fc.array(tie("sequence"), { maxLength: 3 }).map((parts) => parts.join("|")) },
    ),
    sequence: fc.array(tie("term"), { maxLength: 4 }).map((parts) => parts.join("")),
    term: fc.oneof(
      { maxDepth: 3, depthIdentifier: depth },
      { weight: 1, arbitrary: fc.constantFrom(...PLACES) },
      { weight: 4, arbitrary: tie("atom") },
      { weight: 4, arbitrary: fc.tuple(tie("atom"), fc.constantFrom(...COUNTS)).map(([a, b]) => a + b) },
    ),
    atom: fc.oneof(
      { maxDepth: 3, depthIdentifier: depth },
      { weight: 3, arbitrary: fc.constantFrom(...ATOMS) },
      { weight: 1, arbitrary: tie("pattern").map((pattern) => `(${pattern})`) },
      { weight: 1, arbitrary: tie("pattern").map((pattern) => `(?:${pattern})`) },
    ),
  })).pattern;
}

/** Short keys of what the patterns are about. */
export function anyKey(): fc.Arbitrary<string> {
  return fc
    .array(fc.constantFrom("a", "a", "b", "1", "@", "-", "\n", "\r", "é"), { maxLength: 7 })
    .map((parts) => parts.join(""));
}

/** The bytes of a text, each as one character: JavaScript's RegExp then works on bytes, as a master does. */
export function asBytes(text: string): string {
  return Buffer.from(text).toString("latin1");
}
