import type { ReleaseModel } from "../../../src/wire/model.js";
import { codecName, codecType } from "./codecs.js";
import { releaseName, wireTypeName } from "./names.js";

/** `index.ts` of a release: its types, their JSON forms, their codecs, and all codecs by name. */
export function releaseIndex(model: ReleaseModel): string {
  const types = model.families.flatMap((family) => family.types);
  const importsOf = (names: readonly string[], from: string, isType: boolean): string =>
    `import ${isType ? "type " : ""}{ ${names.join(", ")} } from "${from}";`;
  return [
    `import type { ${["BinaryCodec", "Codec"].join(", ")} } from "../../../src/wire/codec.js";`,
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

/** The root `index.ts`: the newest release. */
export function rootIndex(models: readonly ReleaseModel[]): string {
  return [
    `export * from "./${models.at(-1)!.release}/index.js";`,
    'export type { BinaryCodec, BinaryOptions, Codec, CodecOptions } from "../../src/wire/codec.js";',
    "",
  ].join("\n");
}

/**
 * `by-name.ts`: codecs for programs that get their names at run time. A module of its own: a bundler that splits code
 * would put a whole release into every bundle that could reach it.
 */
export function byName(models: readonly ReleaseModel[]): string {
  return [
    'import { RELEASES, type Release } from "../../src/release.js";',
    'import { type AnyCodec, type CodecTable, findCodec, releaseNamed } from "../../src/wire/find-codec.js";',
    "",
    'export type { AnyCodec } from "../../src/wire/find-codec.js";',
    "",
    "const LOADERS: { readonly [R in Release]: () => Promise<{ readonly codecs: Readonly<Record<string, AnyCodec>> }> } = {",
    ...models.map(({ release }) => `  ${JSON.stringify(release)}: () => import("./${release}/index.js"),`),
    "};",
    "",
    "/**",
    " * Every codec of a release, by the type's name. Loads that release only.",
    " *",
    " * @throws MooncakeKvError `ERR_SCHEMA` when there is no such release; the message lists what there is.",
    " */",
    "export async function loadCodecs(release: string): Promise<Readonly<Record<string, AnyCodec>>> {",
    "  return (await LOADERS[releaseNamed(release)]()).codecs;",
    "}",
    "",
    "/**",
    " * The codec of a type in a release. Loads that release only.",
    " *",
    " * @throws MooncakeKvError `ERR_SCHEMA` when there is none; the message lists what there is, or who has the type.",
    " */",
    "export async function loadCodec(release: string, type: string): Promise<AnyCodec> {",
    "  const codecs = await loadCodecs(release);",
    "  if (Object.hasOwn(codecs, type)) return codecs[type]!;",
    "  // Only the error needs to know who else has the type.",
    "  const all = await Promise.all(RELEASES.map(async (name) => [name, await loadCodecs(name)] as const));",
    "  return findCodec(Object.fromEntries(all) as CodecTable, release, type);",
    "}",
    "",
  ].join("\n");
}

/** `all-releases.ts`: everything at once, for tests and for what compares releases. */
export function allReleases(models: readonly ReleaseModel[]): string {
  const names = models.map((model) => releaseName(model.release));
  return [
    'import { type AnyCodec, findCodec } from "../../src/wire/find-codec.js";',
    ...models.map((model, index) => `import * as ${names[index]} from "./${model.release}/index.js";`),
    "",
    `export { ${names.join(", ")} };`,
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
    " * The codec of a type in a release.",
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
    'import type { ReleaseModel } from "../../../src/wire/model.js";',
    "",
    `/** Every type of ${model.release} as data. */`,
    `export const model: ReleaseModel = ${JSON.stringify(model, null, 2)};`,
    "",
  ].join("\n");
}
