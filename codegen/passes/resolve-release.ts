import { type ResolvedRelease, type Schema, SchemaProblem, type SchemaSet } from "../schema.js";

/** The file whose `$defs` are scalars: they are written out where they are used, and are no types. */
export const SCALARS = "common";

/**
 * Pass 3: one self-contained schema for one release. Types and properties of other releases are gone, references to
 * shared scalars are written out, references to types point to `#/$defs/Name`, and "a scalar or null" is one schema
 * instead of a choice of two.
 */
export function resolveRelease(
  set: SchemaSet,
  releases: readonly string[],
  release: string,
): ResolvedRelease {
  const resolver = new Resolver(set, releases, release);
  const $defs: Record<string, Schema> = {};
  const families: { name: string; description: string; types: string[] }[] = [];
  for (const file of set.files) {
    if (file.family === SCALARS) continue;
    const types = Object.entries(file.schema.$defs ?? {}).filter(([, schema]) => resolver.has(schema));
    if (types.length === 0) continue;
    families.push({
      name: file.family,
      description: file.schema.description ?? "",
      types: types.map(([name]) => name),
    });
    for (const [name, schema] of types) $defs[name] = resolver.type(schema);
  }
  return { release, schema: { $id: release, $defs }, families };
}

class Resolver {
  readonly #set: SchemaSet;
  readonly #releases: readonly string[];
  readonly #release: string;

  constructor(set: SchemaSet, releases: readonly string[], release: string) {
    this.#set = set;
    this.#releases = releases;
    this.#release = release;
  }

  has(schema: Schema): boolean {
    return releasesOf(schema, this.#releases).includes(this.#release);
  }

  type(schema: Schema): Schema {
    const elsewhere = Object.entries(schema.properties ?? {})
      .filter(([, property]) => !this.has(property))
      .map(([name, property]) => [name, releasesOf(property, this.#releases)] as const);
    const resolved = this.schema(schema);
    const kept = resolved.properties ?? {};
    return {
      ...resolved,
      ...(elsewhere.length > 0 ? { "x-elsewhere": Object.fromEntries(elsewhere) } : {}),
      ...(resolved["x-binary"]
        ? {
            "x-binary": resolved["x-binary"].map((frame) =>
              frame.filter((part) => part.property === undefined || part.property in kept),
            ),
          }
        : {}),
    };
  }

  schema(schema: Schema): Schema {
    if (schema.$ref !== undefined) return this.#reference(schema);
    const { anyOf, items, prefixItems, properties, ...rest } = schema;
    const { "x-since": _since, "x-until": _until, ...plain } = rest;
    const result: { -readonly [Key in keyof Schema]: Schema[Key] } = { ...plain };
    if (items !== undefined) result.items = items === false ? false : this.schema(items);
    if (prefixItems) result.prefixItems = prefixItems.map((item) => this.schema(item));
    if (properties)
      result.properties = Object.fromEntries(
        Object.entries(properties)
          .filter(([, property]) => this.has(property))
          .map(([name, property]) => [name, this.schema(property)]),
      );
    for (const key of ["not", "if", "then"] as const) if (schema[key]) result[key] = this.schema(schema[key]);
    if (result["x-type"] === "map") result["x-unique-keys"] = true;
    return anyOf ? this.#choice(result, anyOf) : result;
  }

  #reference(schema: Schema): Schema {
    const { $ref, "x-since": _since, "x-until": _until, ...own } = schema;
    const [file = "", path = ""] = $ref!.split("#");
    const name = path.slice("/$defs/".length);
    if (file !== `${SCALARS}.schema.json`) {
      const target = this.#set.files.map((other) => other.schema.$defs?.[name]).find(Boolean);
      if (!target || !this.has(target))
        throw new SchemaProblem([
          `${this.#release} has no ${name}, but a property of that release refers to it`,
        ]);
      return { ...own, $ref: `#/$defs/${name}` };
    }
    const scalars = this.#set.files.find((candidate) => candidate.family === SCALARS)!.schema.$defs!;
    const { title: _title, ...scalar } = this.schema(scalars[name]!);
    return { ...scalar, ...own };
  }

  /** A choice between null and something that states its `type` becomes that with the further type null. */
  #choice(rest: Schema, anyOf: readonly Schema[]): Schema {
    const options = anyOf.map((option) => this.schema(option));
    const other = options.find((option) => option.type !== "null");
    if (options.length !== 2 || other?.type === undefined) return { ...rest, anyOf: options };
    return { ...other, ...rest, type: [other.type as string, "null"] };
  }
}

/** The releases that have a type or a property, oldest first. */
export function releasesOf(schema: Schema, releases: readonly string[]): string[] {
  const first = schema["x-since"] === undefined ? 0 : releases.indexOf(schema["x-since"]);
  const last = schema["x-until"] === undefined ? releases.length - 1 : releases.indexOf(schema["x-until"]);
  return releases.slice(first, last + 1);
}
