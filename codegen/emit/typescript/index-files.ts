import type { ReleaseModel } from "../../model.js";
import { codecName, codecType } from "./codecs.js";
import { releaseName, wireTypeName } from "./names.js";

/** `index.ts` of a release: its types, their JSON forms, their codecs, and all codecs by name. */
export function releaseIndex(model: ReleaseModel): string {
  const types = model.families.flatMap((family) => family.types);
  const importsOf = (names: readonly string[], from: string, isType: boolean): string =>
    `import ${isType ? "type " : ""}{ ${names.join(", ")} } from "${from}";`;
  return [
    `import type { ${["BinaryCodec", "Codec"].join(", ")} } from "../runtime/codec.js";`,
    ...model.families.flatMap((family) => [
      importsOf(
        family.types.map((type) => type.name),
        `./${family.name}.js`,
        true,
      ),
      importsOf(
        family.types.map((type) => codecName(type.name)),
        `./${family.name}-codecs.js`,
        false,
      ),
    ]),
    importsOf(
      types.map((type) => wireTypeName(type.name)),
      "./wire-types.js",
      true,
    ),
    "",
    ...model.families.flatMap((family) => [
      `export type * from "./${family.name}.js";`,
      `export { ${family.types.map((type) => codecName(type.name)).join(", ")} } from "./${family.name}-codecs.js";`,
    ]),
    'export type * from "./wire-types.js";',
    "",
    `/** Every codec of ${model.release}, by the type's name. */`,
    "export const codecs: {",
    ...types.map((type) => `  readonly ${type.name}: ${codecType(type)};`),
    "} = {",
    ...types.map((type) => `  ${type.name}: ${codecName(type.name)},`),
    "};",
    "",
  ].join("\n");
}

/** The root `index.ts`: the newest release flat, each release as a namespace, and codecs by release and name. */
export function rootIndex(models: readonly ReleaseModel[]): string {
  const names = models.map((model) => releaseName(model.release));
  return [
    'import { type AnyCodec, findCodec } from "./runtime/find-codec.js";',
    ...models.map((model, index) => `import * as ${names[index]} from "./${model.release}/index.js";`),
    "",
    `export * from "./${models.at(-1)!.release}/index.js";`,
    `export { ${names.join(", ")} };`,
    'export type { AnyCodec } from "./runtime/find-codec.js";',
    'export type { BinaryCodec, BinaryOptions, Codec, CodecOptions } from "./runtime/codec.js";',
    "",
    "/** Every codec of every release, by release and by the type's name. */",
    "export const codecs: {",
    ...models.map(
      (model, index) => `  readonly ${JSON.stringify(model.release)}: typeof ${names[index]}.codecs;`,
    ),
    "} = {",
    ...models.map((model, index) => `  ${JSON.stringify(model.release)}: ${names[index]}.codecs,`),
    "};",
    "",
    "/**",
    " * The codec of a type in a release, for programs that get both names at run time.",
    " *",
    " * @throws MooncakeKvError `ERR_SCHEMA` when there is none; the message lists what there is.",
    " */",
    "export function codecFor(release: string, type: string): AnyCodec {",
    "  return findCodec(codecs, release, type);",
    "}",
    "",
  ].join("\n");
}

/** The model of a release as data, for programs that derive something from the types: test values, documentation. */
export function modelModule(model: ReleaseModel): string {
  return [
    'import type { ReleaseModel } from "../runtime/model.js";',
    "",
    `/** Every type of ${model.release} as data. */`,
    `export const model: ReleaseModel = ${JSON.stringify(model, null, 2)};`,
    "",
  ].join("\n");
}
