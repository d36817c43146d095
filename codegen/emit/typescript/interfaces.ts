import {
  type ImportDeclarationStructure,
  type InterfaceDeclarationStructure,
  StructureKind,
  type TypeAliasDeclarationStructure,
} from "ts-morph";
import type { FamilyModel, MemberModel, ReleaseModel, TypeModel } from "../../../src/wire/model.js";
import { memberName } from "./names.js";
import { typeReferences, valueType } from "./shapes.js";
import { doc } from "./source.js";

/** One interface a type, with camelCase members; a tagged type is the choice of its options. */
export function interfaceStatements(
  model: ReleaseModel,
  family: FamilyModel,
): (ImportDeclarationStructure | InterfaceDeclarationStructure | TypeAliasDeclarationStructure)[] {
  return [
    ...imports(model, family),
    ...family.types.map((type) => (type.form === "tagged" ? choiceOf(type) : interfaceOf(type))),
  ];
}

/** Imports of the types that a family refers to in others, one a file: `suffix` is behind the family's name. */
function imports(model: ReleaseModel, family: FamilyModel): ImportDeclarationStructure[] {
  const wanted = foreignTypes(model, family);
  return [...wanted].map(([name, types]) => ({
    kind: StructureKind.ImportDeclaration,
    isTypeOnly: true,
    moduleSpecifier: `./${name}.js`,
    namedImports: [...types],
  }));
}

/** Other families, and their types that members of this family refer to. */
export function foreignTypes(model: ReleaseModel, family: FamilyModel): Map<string, string[]> {
  const names = new Set(family.types.flatMap(typeReferences));
  const wanted = new Map<string, string[]>();
  for (const other of model.families) {
    if (other === family) continue;
    const types = other.types.map((type) => type.name).filter((name) => names.has(name));
    if (types.length > 0) wanted.set(other.name, types);
  }
  return wanted;
}

function choiceOf(type: TypeModel): TypeAliasDeclarationStructure {
  return {
    kind: StructureKind.TypeAlias,
    name: type.name,
    isExported: true,
    leadingTrivia: "\n",
    docs: doc(type.description, `Mirrors \`${type.vllm}\`.`),
    type: type.options!.join(" | "),
  };
}

function interfaceOf(type: TypeModel): InterfaceDeclarationStructure {
  return {
    kind: StructureKind.Interface,
    name: type.name,
    isExported: true,
    docs: doc(type.description, `Mirrors \`${type.vllm}\`.`),
    properties: type.members
      .filter((member) => member.shape.kind !== "absent")
      .map((member) => ({
        name: memberName(member.name),
        isReadonly: true,
        type: valueType(member.shape),
        docs: doc(memberDoc(member)),
      })),
  };
}

function memberDoc(member: MemberModel): string {
  if (!member.optional) return member.description;
  const fallback = JSON.stringify(member.fallback);
  return `${member.description} The wire may leave it out: ${fallback} then.`.trim();
}
