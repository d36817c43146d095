import {
  type FunctionDeclarationStructure,
  type ImportDeclarationStructure,
  StructureKind,
  VariableDeclarationKind,
  type VariableStatementStructure,
} from "ts-morph";
import type { FamilyModel, ReleaseModel, TypeModel } from "../../../src/wire/model.js";
import { binaryFunctions, binaryParts, binaryWire } from "./binary.js";
import { fromJson, fromOptionalJson, packedShape, TypeTable, toWire } from "./conversions.js";
import { foreignTypes } from "./interfaces.js";
import { memberName, subjectName, validatorName, valueName, wireTypeName } from "./names.js";
import { doc } from "./source.js";

type Statement = ImportDeclarationStructure | FunctionDeclarationStructure | VariableStatementStructure;

/** The codecs of one family, and the functions that they are made of. */
export function codecStatements(model: ReleaseModel, family: FamilyModel): Statement[] {
  const types = new TypeTable(model.families.flatMap((other) => other.types));
  const body = types.inOrder(family.types).flatMap((type) => typeStatements(model, types, type));
  return [...imports(model, types, family, JSON.stringify(body)), ...body];
}

/** Name of the constant that holds a type's codec. */
export function codecName(type: string): string {
  return `${valueName(type)}Codec`;
}

/** The type of that constant. */
export function codecType(type: TypeModel): string {
  const names = `${type.name}, ${wireTypeName(type.name)}`;
  return type.binary ? `BinaryCodec<${names}, ${binaryWire(type)}>` : `Codec<${names}>`;
}

function typeStatements(model: ReleaseModel, types: TypeTable, type: TypeModel): Statement[] {
  const name = valueName(type.name);
  const differs = types.typeDiffers(type);
  const parts = `{
  subject: ${subjectName(type.name)},
  validator: ${validatorName(type.name)},
  toWire: ${name}ToWire,
  fromJson: ${name}FromJson,${differs ? `\n  packed: ${name}Packed,` : ""}
}`;
  return [
    constant(
      subjectName(type.name),
      "Subject",
      `{ type: ${JSON.stringify(type.name)}, release: ${JSON.stringify(model.release)} }`,
      {
        exported: false,
      },
    ),
    ...(differs
      ? [
          constant(`${name}Packed`, "PackedShape", packed(types, type), {
            exported: true,
            docs: doc(`Where MessagePack has bytes and 64-bit integers in a \`${type.name}\`.`),
          }),
        ]
      : []),
    toWireFunction(types, type),
    fromJsonFunction(type),
    ...(type.binary ? binaryFunctions(type) : []),
    constant(
      codecName(type.name),
      codecType(type),
      type.binary
        ? `/* @__PURE__ */ defineBinaryCodec(${parts}, ${binaryParts(types, type)})`
        : `/* @__PURE__ */ defineCodec(${parts})`,
      { exported: true, docs: doc(`Codec of \`${type.name}\`.`) },
    ),
  ];
}

function constant(
  name: string,
  type: string,
  initializer: string,
  { exported, docs = [] }: { exported: boolean; docs?: string[] },
): VariableStatementStructure {
  return {
    kind: StructureKind.VariableStatement,
    declarationKind: VariableDeclarationKind.Const,
    isExported: exported,
    docs,
    leadingTrivia: "\n",
    declarations: [{ name, type, initializer }],
  };
}

function packed(types: TypeTable, type: TypeModel): string {
  if (type.form === "tagged")
    return `{ tagged: { ${type.options!.map((name) => `${name}: ${valueName(name)}Packed`).join(", ")} } }`;
  const members = type.members
    .map((member, index) => ({ member, key: type.form === "tuple" ? String(index) : member.name }))
    .filter(({ member }) => types.differs(member.shape))
    .map(({ member, key }) => `${key}: ${packedShape(types, member.shape)}`);
  const parts = [`members: { ${members.join(", ")} }`];
  if (type.packed !== undefined) {
    const tag = tagOf(type);
    if (tag !== undefined) parts.push(`tag: ${JSON.stringify(tag)}`);
    const order = type.members.map((member) => member.name).slice(tag === undefined ? 0 : 1);
    parts.push(`order: ${JSON.stringify(order)}`);
  }
  return `{ ${parts.join(", ")} }`;
}

/** What an option of a tagged type says in its first member, `type`; undefined for other types. */
function tagOf(type: TypeModel): string | undefined {
  const [first] = type.members;
  return first?.name === "type" && first.shape.kind === "choice" ? first.shape.values[0] : undefined;
}

function toWireFunction(types: TypeTable, type: TypeModel): FunctionDeclarationStructure {
  const name = valueName(type.name);
  const tuple = type.form === "tuple";
  const head = {
    kind: StructureKind.Function,
    name: `${name}ToWire`,
    isExported: true,
    docs: doc(`A \`${type.name}\` as it lies on the wire.`),
    returnType: "unknown",
  } as const;
  if (type.form === "tagged")
    return {
      ...head,
      parameters: [
        { name: "value", type: type.name },
        { name: "form", type: "WireForm" },
      ],
      statements: [tagSwitch(type, "value", (option) => `${valueName(option)}ToWire(value, form)`)],
    };
  const lines = type.members.map((member) => {
    const value = toWire(
      types,
      subjectName(type.name),
      member.shape,
      `value.${memberName(member.name)}`,
      `$.${member.name}`,
    );
    return tuple ? `  ${value},` : `  ${member.name}: ${value},`;
  });
  const wire = `${tuple ? "[" : "{"}\n${lines.join("\n")}\n${tuple ? "]" : "}"}`;
  const asList = type.packed === "list";
  const usesForm = asList || type.members.some((member) => types.differs(member.shape));
  return {
    ...head,
    parameters: [
      { name: type.members.length > 0 ? "value" : "_value", type: type.name },
      ...(types.typeDiffers(type) ? [{ name: usesForm ? "form" : "_form", type: "WireForm" }] : []),
    ],
    statements: asList
      ? [`const wire = ${wire};`, "return form.packed ? Object.values(wire) : wire;"]
      : [`return ${wire};`],
  };
}

/** A switch over the options of a tagged type. */
function tagSwitch(type: TypeModel, value: string, result: (option: string) => string): string {
  const cases = type.options!.map(
    (option) => `  case ${JSON.stringify(option)}:\n    return ${result(option)};`,
  );
  return [
    `switch (${value}.type) {`,
    ...cases,
    "  default:",
    `    throw unknownTag(${subjectName(type.name)}, ${value});`,
    "}",
  ].join("\n");
}

function fromJsonFunction(type: TypeModel): FunctionDeclarationStructure {
  if (type.form === "tagged")
    return {
      kind: StructureKind.Function,
      name: `${valueName(type.name)}FromJson`,
      isExported: true,
      docs: doc(`The value of a checked JSON form of \`${type.name}\`.`),
      parameters: [{ name: "json", type: wireTypeName(type.name) }],
      returnType: type.name,
      statements: [tagSwitch(type, "json", (option) => `${valueName(option)}FromJson(json)`)],
    };
  const lines = type.members
    .map((member, index) => ({
      member,
      json: type.form === "tuple" ? `json[${index}]` : `json.${member.name}`,
    }))
    .filter(({ member }) => member.shape.kind !== "absent")
    .map(({ member, json }) => {
      const value = member.optional
        ? fromOptionalJson(member.shape, json, member.fallback)
        : fromJson(member.shape, json);
      return `  ${memberName(member.name)}: ${value},`;
    });
  return {
    kind: StructureKind.Function,
    name: `${valueName(type.name)}FromJson`,
    isExported: true,
    docs: doc(`The value of a checked JSON form of \`${type.name}\`.`),
    parameters: [{ name: type.members.length > 0 ? "json" : "_json", type: wireTypeName(type.name) }],
    returnType: type.name,
    statements: [`return {\n${lines.join("\n")}\n};`],
  };
}

/** Imports of what the text of the functions mentions. */
function imports(
  model: ReleaseModel,
  types: TypeTable,
  family: FamilyModel,
  text: string,
): ImportDeclarationStructure[] {
  const mentioned = (names: readonly string[]): string[] =>
    names.filter((name) => new RegExp(`\\b${name}\\b(?! of)`).test(text));
  const foreign = [...foreignTypes(model, family)].map(([other, names]) =>
    importOf(
      `./${other}-codecs.js`,
      mentioned(
        names.flatMap((name) => {
          const value = valueName(name);
          const used = types.typeDiffers(types.get(name)) ? [`${value}Packed`] : [];
          return [`read${name}`, ...used, `${value}FromJson`, `${value}ToWire`, `write${name}`];
        }),
      ),
    ),
  );
  const foreignNames = [...foreignTypes(model, family)].map(([other, names]) =>
    importOf(`./${other}.js`, mentioned(names), true),
  );
  return [
    importOf("../../../src/wire/codec.js", [
      ...mentioned(["defineBinaryCodec", "defineCodec"]),
      ...mentioned(["BinaryCodec", "Codec"]).map((name) => `type ${name}`),
    ]),
    importOf("../../../src/wire/frames.js", mentioned(["FrameReader", "FrameWriter", "frameReaders"])),
    importOf("../../../src/wire/packed-shape.js", [
      ...mentioned(["unknownTag"]),
      ...mentioned(["PackedShape"]).map((name) => `type ${name}`),
    ]),
    importOf("../../../src/wire/schema-error.js", ["Subject"], true),
    importOf("../../../src/wire/wire.js", [
      ...mentioned(["anyFromJson", "fromHex", "uint64OrBytesFromJson"]),
      ...mentioned(["WireForm"]).map((name) => `type ${name}`),
    ]),
    ...foreign,
    ...foreignNames,
    importOf(
      `./${family.name}.js`,
      family.types.map((type) => type.name),
      true,
    ),
    importOf(
      `./${family.name}-validators.js`,
      family.types.map((type) => validatorName(type.name)),
    ),
    importOf(
      "./wire-types.js",
      family.types.map((type) => wireTypeName(type.name)),
      true,
    ),
  ].filter((declaration) => (declaration.namedImports as unknown[]).length > 0);
}

function importOf(
  moduleSpecifier: string,
  namedImports: string[],
  isTypeOnly = false,
): ImportDeclarationStructure {
  return { kind: StructureKind.ImportDeclaration, moduleSpecifier, namedImports, isTypeOnly };
}
