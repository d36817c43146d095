import type * as FastCheck from "fast-check";
import { codecFor, type codecs } from "../../../generated/typescript/all-releases.js";
import type { BinaryCodec, Codec } from "../../../generated/typescript/index.js";
import { model as vllm027 } from "../../../generated/typescript/vllm-0.27/model.js";
import { model as vllm031 } from "../../../generated/typescript/vllm-0.31/model.js";
import { model as vllm033 } from "../../../generated/typescript/vllm-0.33/model.js";
import { RELEASES, type Release } from "../../release.js";
import type { MemberModel, ReleaseModel, RuleModel, Shape, TypeModel } from "../../wire/model.js";
import fc from "../fast-check.js";

const MODELS: Readonly<Record<Release, ReleaseModel>> = {
  "vllm-0.27": vllm027,
  "vllm-0.31": vllm031,
  "vllm-0.33": vllm033,
};

/** Every type of every release. */
export const WIRE_TYPES: readonly { readonly release: Release; readonly type: TypeModel }[] =
  RELEASES.flatMap((release) =>
    MODELS[release].families.flatMap((family) => family.types.map((type) => ({ release, type }))),
  );

type Codecs = typeof codecs;

/** The names of the types of a release. */
export type WireTypeName<R extends Release> = keyof Codecs[R] & string;

/** The value of a type of a release, as its codec decodes it. */
export type WireValue<R extends Release, T extends WireTypeName<R>> =
  Codecs[R][T] extends Codec<infer Value, infer _Json>
    ? Value
    : Codecs[R][T] extends BinaryCodec<infer Value, infer _Json, infer _Wire>
      ? Value
      : never;

/** Any valid value of a type, derived from the model of its release. */
export function wireArbitrary<R extends Release, T extends WireTypeName<R>>(
  release: R,
  type: T,
): FastCheck.Arbitrary<WireValue<R, T>> {
  return typeArbitrary(release, find(release, type)) as FastCheck.Arbitrary<WireValue<R, T>>;
}

function find(release: Release, name: string): TypeModel {
  return MODELS[release].families.flatMap((family) => family.types).find((type) => type.name === name)!;
}

type Values = Record<string, unknown>;

/** Any valid value of a type that is known only at run time. */
export function typeArbitrary(release: Release, type: TypeModel): FastCheck.Arbitrary<unknown> {
  if (type.form === "tagged")
    return fc.oneof(...type.options!.map((name) => typeArbitrary(release, find(release, name))));
  const members = type.members.filter((member) => member.shape.kind !== "absent");
  const ruled = type.rules.flatMap((rule) => (rule.kind === "words" ? [] : rule.members));
  const value = fc
    .integer({ min: 0, max: 6 })
    .chain((length) =>
      fc
        .record(
          Object.fromEntries(
            members.map((member) => [
              member.name,
              memberArbitrary(release, member, ruled.includes(member.name), length),
            ]),
          ),
        )
        .map((values) => camelCased(type.rules.reduce(applyRule, values))),
    );
  if (!type.rules.some((rule) => rule.kind === "words")) return value;
  const codec = codecFor(release, type.name);
  return value.filter((candidate) => accepted(() => codec.toJson(candidate)));
}

function memberArbitrary(
  release: Release,
  { shape }: MemberModel,
  ruled: boolean,
  length: number,
): FastCheck.Arbitrary<unknown> {
  if (!ruled) return shapeArbitrary(release, shape);
  if (shape.kind === "list")
    return fc.array(shapeArbitrary(release, shape.items), { minLength: length, maxLength: length });
  // Rules multiply: what they relate stays small.
  const small = fc.integer({ min: 1, max: 9 });
  return shape.kind === "nullable" ? fc.option(small, { nil: null, freq: 9 }) : small;
}

function applyRule(values: Values, rule: RuleModel): Values {
  if (rule.kind !== "less" && rule.kind !== "multiple") return values;
  const [a, b] = rule.members;
  const [left, right] = [values[a], values[b]];
  if (typeof left !== "number" || typeof right !== "number") return values;
  return { ...values, [a]: rule.kind === "less" ? left % right : left * right };
}

function shapeArbitrary(release: Release, shape: Shape): FastCheck.Arbitrary<unknown> {
  const inner = (other: Shape): FastCheck.Arbitrary<unknown> => shapeArbitrary(release, other);
  switch (shape.kind) {
    case "boolean":
      return fc.boolean();
    case "integer":
      return fc.oneof(
        fc.integer({ min: shape.minimum, max: Math.min(shape.maximum, 1000) }),
        fc.integer({ min: shape.minimum, max: shape.maximum }),
      );
    case "float":
      return fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer(), fc.maxSafeInteger());
    case "uint64":
      return fc.bigInt({ min: 0n, max: (1n << 64n) - 1n });
    case "uint64OrBytes":
      return fc.oneof(fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }), fc.uint8Array({ maxLength: 40 }));
    case "any":
      return openValue;
    case "text":
      return fc.oneof(fc.string({ unit: "grapheme", minLength: shape.minLength }), fc.constant("__proto__"));
    case "choice":
      return fc.constantFrom(...shape.values);
    case "bytes":
      return fc.uint8Array({ minLength: shape.minLength, maxLength: 40 });
    case "list":
      return fc.array(inner(shape.items), { maxLength: 6 });
    case "set":
      return fc.array(inner(shape.items), { maxLength: 6 }).map((items) => new Set(items));
    case "map":
      return fc
        .array(fc.tuple(inner(shape.key), inner(shape.value)), { maxLength: 6 })
        .map((entries) => new Map(entries));
    case "nullable":
      return fc.option(inner(shape.of), { nil: null });
    case "reference":
      return typeArbitrary(release, find(release, shape.name));
    case "absent":
      return fc.constant(null);
  }
}

/** A value that the schema leaves open. A bigint that a number can hold comes back as that number. */
const openValue: FastCheck.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.oneof(
      fc.constantFrom(null, true, false),
      fc.integer(),
      fc.maxSafeInteger(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.bigInt({ min: 1n << 53n, max: (1n << 64n) - 1n }),
      fc.bigInt({ min: -(1n << 63n), max: -(1n << 53n) }),
      fc.string({ unit: "grapheme" }),
      fc.uint8Array({ maxLength: 10 }),
    ),
    fc.array(tie("value"), { maxLength: 3 }),
  ),
})).value;

function camelCased(values: Values): Values {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [memberName(name), value]));
}

/** `group_id` -> `groupId`: what the generated interfaces call a member. */
export function memberName(wireName: string): string {
  return wireName.replace(/_([a-z0-9])/g, (_match, letter: string) => letter.toUpperCase());
}

function accepted(run: () => unknown): boolean {
  try {
    run();
    return true;
  } catch {
    return false;
  }
}
