import { type FunctionDeclarationStructure, StructureKind } from "ts-morph";
import {
  type BinaryPart,
  INTEGER_WIDTHS,
  type MemberModel,
  type Shape,
  type TypeModel,
} from "../../../src/wire/model.js";
import type { TypeTable } from "./conversions.js";
import { memberName, subjectName, valueName } from "./names.js";
import { doc } from "./source.js";

/** The functions that write and read the binary form of a type, and the parts that its codec needs. */
export function binaryFunctions(type: TypeModel): FunctionDeclarationStructure[] {
  return type.binary!.length === 1 ? oneFrame(type) : manyFrames(type);
}

/** `Uint8Array`, or a list of them when the type has several frames. */
export function binaryWire(type: TypeModel): string {
  return type.binary!.length === 1 ? "Uint8Array" : "Uint8Array[]";
}

/** The second argument of `defineBinaryCodec`. */
export function binaryParts(types: TypeTable, type: TypeModel): string {
  const exact = isExact(types, type);
  if (type.binary!.length > 1)
    return `{ toBinary: ${valueName(type.name)}ToFrames, fromBinary: ${valueName(type.name)}FromFrames, exact: ${exact} }`;
  return `{
  toBinary: (value) => write${type.name}(new FrameWriter(${subjectName(type.name)}), value).finish(),
  fromBinary: (wire, lenient) => {
    const frame = new FrameReader(${subjectName(type.name)}, wire, lenient);
    const value = read${type.name}(frame);
    frame.end();
    return value;
  },
  exact: ${exact},
}`;
}

function oneFrame(type: TypeModel): FunctionDeclarationStructure[] {
  const parts = type.binary![0]!;
  const valueUsed = parts.some((part) => part.kind === "member");
  return [
    fn(
      `write${type.name}`,
      `Adds a \`${type.name}\` to a frame.`,
      [
        ["frame", "FrameWriter"],
        [valueUsed ? "value" : "_value", type.name],
      ],
      "FrameWriter",
      [...parts.map((part) => write(type, part, "frame")), "return frame;"],
    ),
    fn(`read${type.name}`, `Takes a \`${type.name}\` from a frame.`, [["frame", "FrameReader"]], type.name, [
      ...parts.map((part) => read(type, part, "frame", false)),
      result(type),
    ]),
  ];
}

function manyFrames(type: TypeModel): FunctionDeclarationStructure[] {
  const name = valueName(type.name);
  const subject = subjectName(type.name);
  const frames = type.binary!;
  return [
    fn(`${name}ToFrames`, `The frames of a \`${type.name}\`.`, [["value", type.name]], "Uint8Array[]", [
      `const frames = Array.from({ length: ${frames.length} }, () => new FrameWriter(${subject}));`,
      ...frames.flatMap((parts, index) => parts.map((part) => write(type, part, `frames[${index}]!`))),
      "return frames.map((frame) => frame.finish());",
    ]),
    fn(
      `${name}FromFrames`,
      `The \`${type.name}\` of its frames.`,
      [
        ["wire", "readonly Uint8Array[]"],
        ["lenient", "boolean"],
      ],
      type.name,
      [
        `const frames = frameReaders(${subject}, wire, ${frames.length}, lenient);`,
        ...frames.flatMap((parts, index) => [
          ...parts.map((part) => read(type, part, `frames[${index}]!`, parts.length === 1)),
          `frames[${index}]!.end();`,
        ]),
        result(type),
      ],
    ),
  ];
}

function fn(
  name: string,
  description: string,
  parameters: readonly [string, string][],
  returnType: string,
  statements: string[],
): FunctionDeclarationStructure {
  return {
    kind: StructureKind.Function,
    name,
    isExported: true,
    docs: doc(description),
    parameters: parameters.map(([parameter, type]) => ({ name: parameter, type })),
    returnType,
    statements,
  };
}

function result(type: TypeModel): string {
  return `return { ${type.members.map((member) => memberName(member.name)).join(", ")} };`;
}

function write(type: TypeModel, part: BinaryPart, frame: string): string {
  if (part.kind === "tag") return `${frame}.tag(${JSON.stringify(part.text)});`;
  const member = find(type, part.member);
  const value = `value.${memberName(member.name)}`;
  const name = JSON.stringify(member.name);
  switch (part.encoding) {
    case "uint64be":
      return `${frame}.uint64(${value}, ${name});`;
    case "flag":
      return `${frame}.flag(${value}, ${name});`;
    case "rest":
      return member.shape.kind === "bytes"
        ? `${frame}.bytes(${value}, ${name});`
        : `for (const item of ${value}) write${itemType(member)}(${frame}, item);`;
    default:
      return `${frame}.uint(${value}, ${INTEGER_WIDTHS[part.encoding]}, ${name});`;
  }
}

/** `whole`: the part has the frame to itself, so that a lenient reader takes all of it. */
function read(type: TypeModel, part: BinaryPart, frame: string, whole: boolean): string {
  if (part.kind === "tag") return `${frame}.tag(${JSON.stringify(part.text)});`;
  const member = find(type, part.member);
  const variable = memberName(member.name);
  const name = JSON.stringify(member.name);
  switch (part.encoding) {
    case "uint64be":
      return `const ${variable} = ${frame}.uint64(${name});`;
    case "flag":
      return `const ${variable} = ${frame}.flag(${name});`;
    case "rest":
      return member.shape.kind === "bytes"
        ? `const ${variable} = ${frame}.rest();`
        : `const ${variable}: ${itemType(member)}[] = [];
while (${frame}.left > 0) ${variable}.push(read${itemType(member)}(${frame}));`;
    default:
      return `const ${variable} = ${frame}.${whole ? "wholeUint" : "uint"}(${INTEGER_WIDTHS[part.encoding]}, ${name});`;
  }
}

function find(type: TypeModel, name: string): MemberModel {
  return type.members.find((member) => member.name === name)!;
}

function itemType(member: MemberModel): string {
  const { shape } = member;
  if (shape.kind === "list" && shape.items.kind === "reference") return shape.items.name;
  throw new Error(`${member.name}: the rest of a frame is bytes or a list of a type`);
}

/** Whether everything that fits the frames also keeps to the schema. */
function isExact(types: TypeTable, type: TypeModel): boolean {
  return (
    type.rules.length === 0 &&
    type
      .binary!.flat()
      .every((part) => part.kind === "tag" || fits(types, find(type, part.member).shape, part.encoding))
  );
}

function fits(types: TypeTable, shape: Shape, encoding: string): boolean {
  switch (shape.kind) {
    case "integer":
      return shape.minimum === 0 && shape.maximum >= 2 ** (8 * INTEGER_WIDTHS[encoding]!) - 1;
    case "bytes":
      return shape.minLength === 0;
    case "list":
      return shape.items.kind === "reference" && isExact(types, types.get(shape.items.name));
    default:
      return shape.kind === "boolean" || shape.kind === "uint64";
  }
}
