import {
  type BinaryPart,
  type FamilyModel,
  INTEGER_WIDTHS,
  type MemberModel,
  type Shape,
  type TypeModel,
} from "../../../src/wire/model.js";
import { attributeName } from "./names.js";
import { comment, docstring } from "./source.js";

/** The module of one family: a dataclass for each of its types that has a binary form. */
export function familyModule(family: FamilyModel): string {
  const types = inOrder(family.types.filter((type) => type.binary));
  const text = types.map((type) => typeClass(type).join("\n")).join("\n\n\n");
  const runtime = ["Buffer", "FrameReader", "FrameWriter", "frame_readers"].filter((name) =>
    new RegExp(`\\b${name}\\b`).test(text),
  );
  const dataclasses = ["dataclass", ...(text.includes("field(") ? ["field"] : [])];
  return [
    ...docstring("", family.description),
    "",
    "from __future__ import annotations",
    "",
    `from dataclasses import ${dataclasses.join(", ")}`,
    "from typing import ClassVar, Sequence",
    "",
    `from ..frames import ${runtime.join(", ")}`,
    "",
    "",
    text,
    "",
  ].join("\n");
}

/** Whether a family has a module at all. */
export function hasModule(family: FamilyModel): boolean {
  return family.types.some((type) => type.binary);
}

/** Types behind those that their lists hold. */
function inOrder(types: readonly TypeModel[]): TypeModel[] {
  const ordered: TypeModel[] = [];
  const visit = (type: TypeModel): void => {
    if (ordered.includes(type)) return;
    for (const member of type.members)
      for (const target of types) if (target.name === itemType(member.shape)) visit(target);
    ordered.push(type);
  };
  for (const type of types) visit(type);
  return ordered;
}

function typeClass(type: TypeModel): string[] {
  const members = [...type.members].sort((a, b) => Number(a.optional) - Number(b.optional));
  const tag = leadingTag(type);
  return [
    "@dataclass(slots=True)",
    `class ${type.name}:`,
    ...docstring("    ", type.description, `Mirrors ${type.vllm}.`),
    "",
    ...members.flatMap((member) => [...comment("    ", member.description), `    ${attribute(member)}`]),
    ...(members.length > 0 ? [""] : []),
    "    # Frames of the binary form.",
    `    FRAMES: ClassVar[int] = ${type.binary!.length}`,
    ...(tag === undefined
      ? []
      : [
          "    # What the first frame holds, and no other type's does.",
          `    TAG: ClassVar[bytes] = ${pythonBytes(tag)}`,
        ]),
    "",
    ...(type.binary!.length === 1 ? oneFrame(type) : manyFrames(type)),
  ];
}

/** The text that fills the first frame. */
function leadingTag(type: TypeModel): string | undefined {
  const [first, ...others] = type.binary![0]!;
  return first?.kind === "tag" && others.length === 0 ? first.text : undefined;
}

function attribute(member: MemberModel): string {
  const declaration = `${attributeName(member.name)}: ${pythonType(member.shape)}`;
  if (!member.optional) return declaration;
  if (Array.isArray(member.fallback) && member.fallback.length === 0)
    return `${declaration} = field(default_factory=list)`;
  throw new Error(`${member.name}: no Python for the default ${JSON.stringify(member.fallback)} yet`);
}

function pythonType(shape: Shape): string {
  switch (shape.kind) {
    case "boolean":
      return "bool";
    case "integer":
    case "uint64":
      return "int";
    case "bytes":
      return "Buffer";
    default:
      return `list[${itemType(shape)!}]`;
  }
}

function itemType(shape: Shape): string | undefined {
  return shape.kind === "list" && shape.items.kind === "reference" ? shape.items.name : undefined;
}

function oneFrame(type: TypeModel): string[] {
  const parts = type.binary![0]!;
  return [
    "    def write(self, frame: FrameWriter) -> None:",
    '        """Adds the value to a frame."""',
    ...parts.flatMap((part) => write(type, part, "frame")),
    "",
    "    @classmethod",
    `    def read(cls, frame: FrameReader) -> ${type.name}:`,
    '        """Takes a value from a frame."""',
    ...parts.flatMap((part) => read(type, part, "frame")),
    `        return cls(${constructorArguments(type)})`,
    "",
    "    def to_binary(self) -> Buffer:",
    '        """The frame of the value."""',
    `        frame = FrameWriter("${type.name}")`,
    "        self.write(frame)",
    "        return frame.finish()",
    "",
    "    @classmethod",
    `    def from_binary(cls, wire: Buffer) -> ${type.name}:`,
    '        """The value of a frame; its bytes are views of the frame."""',
    `        frame = FrameReader("${type.name}", wire)`,
    "        value = cls.read(frame)",
    "        frame.end()",
    "        return value",
  ];
}

function manyFrames(type: TypeModel): string[] {
  const frames = type.binary!;
  return [
    "    def to_binary(self) -> list[Buffer]:",
    '        """The frames of the value."""',
    `        frames = [FrameWriter("${type.name}") for _ in range(${frames.length})]`,
    ...frames.flatMap((parts, index) => parts.flatMap((part) => write(type, part, `frames[${index}]`))),
    "        return [frame.finish() for frame in frames]",
    "",
    "    @classmethod",
    `    def from_binary(cls, wire: Sequence[Buffer]) -> ${type.name}:`,
    '        """The value of its frames; its bytes are views of them."""',
    `        frames = frame_readers("${type.name}", wire, ${frames.length})`,
    ...frames.flatMap((parts, index) => [
      ...parts.flatMap((part) => read(type, part, `frames[${index}]`)),
      `        frames[${index}].end()`,
    ]),
    `        return cls(${constructorArguments(type)})`,
  ];
}

function constructorArguments(type: TypeModel): string {
  return type.members.map(({ name }) => `${attributeName(name)}=${attributeName(name)}`).join(", ");
}

function write(type: TypeModel, part: BinaryPart, frame: string): string[] {
  if (part.kind === "tag") return [`        ${frame}.tag(${pythonBytes(part.text)})`];
  const member = type.members.find(({ name }) => name === part.member)!;
  const value = `self.${attributeName(member.name)}`;
  switch (part.encoding) {
    case "flag":
      return [`        ${frame}.flag(${value}, "${member.name}")`];
    case "rest":
      return member.shape.kind === "bytes"
        ? [`        ${frame}.bytes(${value}, "${member.name}")`]
        : [`        for item in ${value}:`, `            item.write(${frame})`];
    default:
      return [`        ${frame}.uint(${value}, ${INTEGER_WIDTHS[part.encoding]}, "${member.name}")`];
  }
}

function read(type: TypeModel, part: BinaryPart, frame: string): string[] {
  if (part.kind === "tag") return [`        ${frame}.tag(${pythonBytes(part.text)})`];
  const member = type.members.find(({ name }) => name === part.member)!;
  const variable = attributeName(member.name);
  switch (part.encoding) {
    case "flag":
      return [`        ${variable} = ${frame}.flag("${member.name}")`];
    case "rest":
      return member.shape.kind === "bytes"
        ? [`        ${variable} = ${frame}.rest()`]
        : [
            `        ${variable} = []`,
            `        while ${frame}.left:`,
            `            ${variable}.append(${itemType(member.shape)}.read(${frame}))`,
          ];
    default:
      return [`        ${variable} = ${frame}.uint(${INTEGER_WIDTHS[part.encoding]}, "${member.name}")`];
  }
}

function pythonBytes(text: string): string {
  return `b${JSON.stringify(text)}`;
}
