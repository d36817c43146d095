/** A JSON Schema as this generator reads it: the keywords that it knows, and no others (a pass checks that). */
export interface Schema {
  readonly $schema?: string;
  readonly $id?: string;
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly title?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly pattern?: string;
  readonly items?: Schema | false;
  readonly prefixItems?: readonly Schema[];
  readonly minItems?: number;
  readonly uniqueItems?: boolean;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
  readonly anyOf?: readonly Schema[];
  readonly not?: Schema;
  readonly if?: Schema;
  readonly then?: Schema;
  /** The vLLM symbol that a type mirrors. */
  readonly "x-vllm"?: string;
  /** First release that has the type or property. */
  readonly "x-since"?: string;
  /** Last release that has the type or property. */
  readonly "x-until"?: string;
  /** What the value is, where JSON can't say it. */
  readonly "x-type"?:
    | "uint64"
    | "bytes"
    | "uint64-or-bytes"
    | "any"
    | "set"
    | "map"
    | "tuple"
    | "tagged"
    | "absent";
  /** In MessagePack, a type is written as a map or as a list of its members; either is read. */
  readonly "x-packed"?: "map" | "list";
  /** Whether vLLM writes the property also where it has its default. */
  readonly "x-written"?: boolean;
  /** Names of the members of a tuple. */
  readonly "x-names"?: readonly string[];
  /** The rule of this schema in words, for error messages. */
  readonly "x-rule"?: string;
  readonly "x-equal-length"?: readonly (readonly (string | number)[])[];
  readonly "x-less"?: readonly (readonly [string | number, string | number])[];
  readonly "x-multiple"?: readonly (readonly [string | number, string | number])[];
  /** The pairs of this list have different first elements. Set by the generator on maps. */
  readonly "x-unique-keys"?: boolean;
  /** Properties that this type has in other releases only, with these. Set by the generator. */
  readonly "x-elsewhere"?: Readonly<Record<string, readonly string[]>>;
  readonly "x-binary"?: readonly (readonly SchemaBinaryPart[])[];
}

/** One part of an `x-binary` frame as it stands in a schema. */
export interface SchemaBinaryPart {
  readonly tag?: string;
  readonly property?: string;
  readonly encoding?: string;
}

/** One file of `schema/`. */
export interface SchemaFile {
  /** The family: the file's name without `.schema.json`. */
  readonly family: string;
  readonly fileName: string;
  readonly schema: Schema;
}

/** All schema files, and what identifies this version of them. */
export interface SchemaSet {
  readonly files: readonly SchemaFile[];
  /** sha256 over names and contents of the files, as lower-case hex. */
  readonly hash: string;
}

/** The types of one release: a single schema whose `$defs` hold every type, free of releases and shared scalars. */
export interface ResolvedRelease {
  readonly release: string;
  readonly schema: Schema & { readonly $defs: Readonly<Record<string, Schema>> };
  /** Family of each type. */
  readonly families: readonly {
    readonly name: string;
    readonly description: string;
    readonly types: readonly string[];
  }[];
}

/** A problem of the schemas that a person has to mend; `problems` has one line each. */
export class SchemaProblem extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`the schemas can't be used:\n${problems.map((problem) => `  - ${problem}`).join("\n")}`);
    this.name = "SchemaProblem";
    this.problems = problems;
  }
}
