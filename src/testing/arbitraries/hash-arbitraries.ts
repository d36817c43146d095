import type * as FastCheck from "fast-check";
import { type Hashable, SharedText } from "../../hash/hashable.js";
import type { HashRequest, MmFeature } from "../../hash/request.js";
import fc from "../fast-check.js";

/** Where an id changes its width in a pickle or in CBOR, and the ids next to it. */
const EDGES = [
  0, 1, 23, 24, 255, 256, 65_535, 65_536, 0x7fff_fffe, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff,
] as const;

/** One token id; the edges of every width are likely. */
export function tokenId(): FastCheck.Arbitrary<number> {
  return fc.oneof(fc.constantFrom(...EDGES), fc.nat(200_000), fc.nat(0xffff_ffff));
}

/** Token ids of a prompt. */
export function tokenIds(maxLength: number = 80): FastCheck.Arbitrary<Uint32Array> {
  return fc.array(tokenId(), { maxLength }).map((ids) => Uint32Array.from(ids));
}

/** Texts that UTF-8 can carry, beyond ASCII and beyond U+FFFF included. */
export function wellFormedText(maxLength: number = 12): FastCheck.Arbitrary<string> {
  return fc.oneof(
    fc.string({ maxLength }),
    fc.string({ unit: "binary", maxLength }),
    fc.constantFrom("", "a", "\u00ff", "\u0100", "\u{1f600}", "lora", "mm"),
  );
}

/** Any text of UTF-16 units, lone surrogates included. */
export function anyText(maxLength: number = 12): FastCheck.Arbitrary<string> {
  const unit = fc.integer({ min: 0xd800, max: 0xdfff }).map((code) => String.fromCharCode(code));
  return fc.oneof(
    wellFormedText(maxLength),
    fc.array(fc.oneof(unit, fc.string({ maxLength: 2 })), { maxLength: 4 }).map((units) => units.join("")),
  );
}

/**
 * A value of a block in a form that JSON carries, object identities included: `ref` n is the n-th object made so far,
 * modulo their number, and null before there is one. A text that is `plain` is an object that nothing refers to.
 */
export type HashableSpec =
  | null
  | { readonly int: string }
  | { readonly text: string; readonly plain?: boolean | undefined; readonly repeat?: number | undefined }
  | { readonly bytes: string; readonly repeat?: number | undefined }
  | { readonly tuple: readonly HashableSpec[] }
  | { readonly ints: readonly number[] }
  | { readonly ref: number };

/** Integers of every width, the edges likely. */
export function anyInteger(): FastCheck.Arbitrary<bigint> {
  const edge = fc
    .tuple(
      fc.constantFrom(8n, 16n, 31n, 32n, 63n, 64n, 127n, 128n, 2032n, 2040n),
      fc.bigInt(-2n, 2n),
      fc.boolean(),
    )
    .map(([bits, delta, negative]) => (negative ? -(2n ** bits) : 2n ** bits) + delta);
  return fc.oneof(fc.bigInt(-300n, 70_000n), edge, fc.bigInt());
}

/** Values of a block, with shared objects among them. */
export function hashableSpec(): FastCheck.Arbitrary<HashableSpec> {
  const bytes = fc
    .uint8Array({ maxLength: 40 })
    .map((data) => ({ bytes: Buffer.from(data).toString("hex") }));
  return fc.letrec<{ value: HashableSpec; tuple: HashableSpec }>((tie) => ({
    value: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      fc.constant(null),
      anyInteger().map((value) => ({ int: value.toString() })),
      fc.tuple(anyText(), fc.boolean()).map(([text, plain]) => ({ text, plain })),
      bytes,
      fc.nat(20).map((ref) => ({ ref })),
      tie("tuple"),
    ),
    tuple: fc.array(tie("value"), { maxLength: 6 }).map((tuple) => ({ tuple })),
  })).value;
}

/** The value that a spec describes. */
export function buildHashable(spec: HashableSpec, objects: Hashable[] = []): Hashable {
  if (spec === null) return null;
  if ("ref" in spec) return objects.length === 0 ? null : objects[spec.ref % objects.length]!;
  if ("int" in spec) return BigInt(spec.int);
  let made: Hashable;
  if ("text" in spec) {
    const text = spec.text.repeat(spec.repeat ?? 1);
    if (spec.plain) return text;
    made = new SharedText(text);
  } else if ("bytes" in spec) made = Uint8Array.from(Buffer.from(spec.bytes.repeat(spec.repeat ?? 1), "hex"));
  else if ("ints" in spec) made = [...spec.ints];
  else made = spec.tuple.map((item) => buildHashable(item, objects));
  objects.push(made);
  return made;
}

/** Multimodal items in order, apart from each other. */
export function mmFeatures(): FastCheck.Arbitrary<MmFeature[]> {
  const piece = fc.record({
    gap: fc.nat(9),
    identifier: wellFormedText(),
    length: fc.integer({ min: 1, max: 30 }),
  });
  return fc.array(piece, { maxLength: 4 }).map((pieces) => {
    let at = 0;
    return pieces.map(({ gap, identifier, length }) => {
      const offset = at + gap;
      at = offset + length;
      return { identifier, offset, length };
    });
  });
}

/** Requests with every kind of extra key, of up to 80 tokens. */
export function hashRequest(): FastCheck.Arbitrary<HashRequest> {
  const embeds = (rows: number) =>
    fc
      .integer({ min: 1, max: 4 })
      .chain((width) => fc.uint8Array({ minLength: rows * width, maxLength: rows * width }))
      .map((data) => ({ promptEmbeds: { data, rows } }));
  const extras = fc.record(
    {
      loraRequest: fc.record({ loraName: wellFormedText(), loraPath: wellFormedText() }),
      cacheSalt: wellFormedText(),
      mmFeatures: mmFeatures(),
      sharedTexts: fc.boolean(),
    },
    { requiredKeys: [] },
  );
  return fc
    .tuple(tokenIds(), extras)
    .chain(([promptTokenIds, more]) =>
      fc
        .option(embeds(promptTokenIds.length), { nil: {}, freq: 3 })
        .map((embedded) => ({ promptTokenIds, ...more, ...embedded })),
    );
}
