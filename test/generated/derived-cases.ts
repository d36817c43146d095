import { WIRE_TYPES } from "../../src/testing/arbitraries/wire-arbitraries.js";
import type { MemberModel, Shape, TypeModel } from "../../src/wire/model.js";
import { SMALLEST, type WireCase } from "./cases/index.js";

/** Objects where something else is wanted. */
const NO_OBJECTS: readonly unknown[] = [{}, { length: 1 }];

/**
 * What follows from the model alone, for every type of every release: the smallest value is accepted; no member may
 * be of another kind, be missing when it is required, or have a name that the type does not know.
 */
export const DERIVED_CASES: readonly WireCase[] = WIRE_TYPES.flatMap(({ release, type }) => {
  const smallest = SMALLEST[type.name];
  const base = { type: type.name, releases: [release] };
  return [
    { ...base, name: "the smallest value", json: smallest },
    ...(type.form === "tagged"
      ? taggedCases(smallest as object)
      : type.form === "tuple"
        ? tupleCases(type, smallest as unknown[])
        : objectCases(type, smallest as object)
    ).map(([name, json]) => ({ ...base, name, json, refused: /^\w+ of vllm-[\d.]+ at \$/ })),
  ];
});

type Refused = [name: string, json: unknown];

function objectCases(type: TypeModel, smallest: object): Refused[] {
  const cases: Refused[] = [
    ["an unknown property", { ...smallest, no_such_property: null }],
    ["another kind of value", [smallest]],
  ];
  for (const member of type.members) {
    for (const wrong of wrongValues(member))
      cases.push([
        `${member.name} = ${typeof wrong} ${String(wrong)}`,
        { ...smallest, [member.name]: wrong },
      ]);
    if (!member.optional) {
      const { [member.name]: _dropped, ...rest } = smallest as Record<string, unknown>;
      cases.push([`no ${member.name}`, rest]);
    }
  }
  return cases;
}

function taggedCases(smallest: object): Refused[] {
  const { type: _type, ...rest } = smallest as { readonly type: unknown };
  return [
    ["no type", rest],
    ["the type of no option", { ...smallest, type: "NoSuchType" }],
    ["another kind of value", [smallest]],
  ];
}

function tupleCases(type: TypeModel, smallest: unknown[]): Refused[] {
  return [
    ["a member too few", smallest.slice(0, -1)],
    ["a member too many", [...smallest, 0]],
    ["another kind of value", { ...smallest }],
    ...type.members.flatMap((member, index) =>
      wrongValues(member).map(
        (wrong): Refused => [
          `${member.name} = ${typeof wrong} ${String(wrong)}`,
          smallest.with(index, wrong),
        ],
      ),
    ),
  ];
}

function wrongValues({ shape }: MemberModel): unknown[] {
  const nullable = shape.kind === "nullable" || shape.kind === "absent";
  return [...wrongFor(shape.kind === "nullable" ? shape.of : shape), ...(nullable ? [] : [null])];
}

function wrongFor(shape: Shape): readonly unknown[] {
  switch (shape.kind) {
    case "boolean":
      return [0, 1, "true", [], ...NO_OBJECTS];
    case "integer":
      return [
        shape.minimum - 1,
        shape.maximum + 1,
        0.5,
        "1",
        true,
        1n,
        [1],
        Number.NaN,
        Number.NEGATIVE_INFINITY,
        ...NO_OBJECTS,
      ];
    case "float":
      return ["1", true, 1n, [1], ...NO_OBJECTS];
    case "uint64OrBytes":
      return [1, 1n, "", "0x0", "0xAB", "ab", "-1", "18446744073709551616", [], ...NO_OBJECTS];
    case "any":
      return [];
    case "uint64":
      return [
        1,
        1n,
        "",
        "1.0",
        "1e3",
        " 1",
        "00",
        "+1",
        "18446744073709551616",
        "99999999999999999999",
        [],
        ...NO_OBJECTS,
      ];
    case "text":
      return [0, true, [], ...(shape.minLength > 0 ? [""] : []), ...NO_OBJECTS];
    case "choice":
      return ["", 0, [shape.values[0]], ...NO_OBJECTS];
    case "bytes":
      return [
        0,
        "a",
        "0g",
        "AB",
        "ab ",
        new Uint8Array(2),
        [171],
        ...(shape.minLength > 0 ? [""] : []),
        ...NO_OBJECTS,
      ];
    case "list":
    case "set":
    case "map":
      return [
        0,
        "",
        "ab",
        new Set(),
        new Map(),
        new Uint8Array(2),
        ...NO_OBJECTS,
        [undefined],
        ...tooDeep(shape),
      ];
    case "reference":
      return [0, "", true];
    case "nullable":
      return wrongFor(shape.of);
    case "absent":
      return [0, "", false, [], ...NO_OBJECTS];
  }
}

/** Lists in lists, deeper than any list of known items goes. */
function tooDeep(shape: Shape): unknown[] {
  return isOpen(shape) ? [] : [[[[[[]]]]]];
}

/** Whether there is a list in a shape that may hold anything. */
function isOpen(shape: Shape): boolean {
  if (shape.kind === "list" || shape.kind === "set") return isOpen(shape.items);
  if (shape.kind === "nullable") return isOpen(shape.of);
  return shape.kind === "any";
}
