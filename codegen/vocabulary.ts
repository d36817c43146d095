import {
  _,
  Ajv2020,
  type AnySchemaObject,
  type Code,
  type CodeKeywordDefinition,
  type KeywordCxt,
} from "ajv/dist/2020.js";
import { getProperty, nil, or } from "ajv/dist/compile/codegen/index.js";
import type { ResolvedRelease, Schema } from "./schema.js";

/** Keywords that say something to the generator and nothing to a validator. */
const ANNOTATIONS: readonly string[] = [
  "x-vllm",
  "x-since",
  "x-until",
  "x-type",
  "x-packed",
  "x-written",
  "x-names",
  "x-rule",
  "x-elsewhere",
  "x-binary",
];

/**
 * An ajv that knows this project's keywords, for compiling in memory and as a module. It reports the failing
 * subschema and the offending value with each error, and refuses whatever ajv's strict mode would only log.
 */
export function createAjv(): Ajv2020 {
  const refuse = (message: unknown): never => {
    throw new Error(`ajv: ${String(message)}`);
  };
  const ajv = new Ajv2020({
    strict: true,
    allowUnionTypes: true,
    verbose: true,
    messages: false,
    ownProperties: true,
    inlineRefs: false,
    logger: { log: refuse, warn: refuse, error: refuse },
    code: { source: true, esm: true, lines: true },
  });
  ajv.addVocabulary([...ANNOTATIONS]);
  ajv.removeKeyword("uniqueItems");
  for (const keyword of [uniqueItems, uniqueKeys, equalLength, less, multiple]) ajv.addKeyword(keyword);
  return ajv;
}

/** Replaces ajv's own: it must also see two members named `__proto__`, and needs no helper of ajv's at run time. */
const uniqueItems: CodeKeywordDefinition = {
  keyword: "uniqueItems",
  type: "array",
  schemaType: "boolean",
  code: (cxt) => refuseRepeats(cxt, (item) => item),
  error: { message: "", params: ({ params }) => _`{index: ${params["index"]}, first: ${params["first"]}}` },
};

/** A list of pairs, none of whose first elements appears twice: how a map lies on the wire. */
const uniqueKeys: CodeKeywordDefinition = {
  ...uniqueItems,
  keyword: "x-unique-keys",
  code: (cxt) => refuseRepeats(cxt, (item) => _`(Array.isArray(${item}) ? ${item}[0] : undefined)`),
};

function refuseRepeats(cxt: KeywordCxt, keyOf: (item: Code) => Code): void {
  const { gen, data } = cxt;
  const seen = gen.const("seen", _`new Map()`);
  const index = gen.let("index", _`-1`);
  const first = gen.let("first", _`-1`);
  gen.forRange("i", 0, _`${data}.length`, (i) => {
    const key = gen.const("key", keyOf(_`${data}[${i}]`));
    gen.if(_`${seen}.has(${key})`, () => {
      gen.assign(index, i).assign(first, _`${seen}.get(${key})`).break();
    });
    gen.code(_`${seen}.set(${key}, ${i})`);
  });
  cxt.setParams({ index, first });
  cxt.pass(_`${index} === -1`);
}

/** Groups of members that are lists of equal length. */
const equalLength: CodeKeywordDefinition = groupKeyword("x-equal-length", "object", (members) =>
  or(
    ...members.slice(1).map((member) => {
      const [a, b] = [members[0]!, member];
      return _`(Array.isArray(${a}) && Array.isArray(${b}) && ${a}.length !== ${b}.length)`;
    }),
  ),
);

/** Pairs of members, the first of which is less than the second. */
const less: CodeKeywordDefinition = groupKeyword(
  "x-less",
  ["object", "array"],
  ([a, b]) => _`(typeof ${a} === "number" && typeof ${b} === "number" && ${a} >= ${b})`,
);

/** Pairs of members, the first of which is a multiple of the second. */
const multiple: CodeKeywordDefinition = groupKeyword(
  "x-multiple",
  "object",
  ([a, b]) => _`(typeof ${a} === "number" && typeof ${b} === "number" && ${a} % ${b} !== 0)`,
);

/** A keyword that lists groups of members; the parameter of its error is the index of the first group that fails. */
function groupKeyword(
  keyword: string,
  type: "object" | ["object", "array"],
  fails: (members: readonly Code[]) => Code,
): CodeKeywordDefinition {
  return {
    keyword,
    type,
    schemaType: "array",
    code(cxt) {
      const { gen, data } = cxt;
      const groups = cxt.schema as readonly (readonly (string | number)[])[];
      const group = gen.let("group", _`-1`);
      for (const [index, members] of [...groups.entries()].reverse())
        gen.if(fails(members.map((member) => _`${data}${getProperty(member)}`)), () =>
          gen.assign(group, index),
        );
      cxt.setParams({ group });
      cxt.pass(_`${group} === -1`);
    },
    error: { message: "", params: ({ params }) => _`{group: ${params["group"] ?? nil}}` },
  };
}

/**
 * An ajv that knows every type of a release by its name, so that each is compiled once however many refer to it.
 * What only people read is left out: the rest goes into validators, from where error messages quote it.
 */
export function createReleaseAjv(resolved: ResolvedRelease): Ajv2020 {
  const ajv = createAjv();
  for (const [name, schema] of Object.entries(resolved.schema.$defs))
    ajv.addSchema(plain(schema["x-type"] === "tagged" ? byTag(schema) : schema), name);
  return ajv;
}

/**
 * A choice of tagged types as a decision: the tag says which of them is checked, so that an error is about that one and
 * not about whichever option failed last.
 */
function byTag({ anyOf = [], ...schema }: Schema): AnySchemaObject {
  const tag = (names: readonly string[]): AnySchemaObject => ({
    type: "object",
    required: ["type"],
    properties: { type: { type: "string", enum: names } },
  });
  const name = ({ $ref = "" }: Schema): string => $ref.slice("#/$defs/".length);
  return {
    ...schema,
    ...tag(anyOf.map(name)),
    // biome-ignore lint/suspicious/noThenProperty: it is the keyword of JSON Schema.
    allOf: anyOf.map((option) => ({ if: tag([name(option)]), then: { $ref: option.$ref } })),
  };
}

function plain(schema: Schema | AnySchemaObject): AnySchemaObject {
  return JSON.parse(
    JSON.stringify(schema, (key, value: unknown) => {
      if (PROSE.has(key) && typeof value === "string") return undefined;
      if (key === "default" || key === "x-binary") return undefined;
      return key === "$ref" ? String(value).slice("#/$defs/".length) : value;
    }),
  ) as AnySchemaObject;
}

const PROSE: ReadonlySet<string> = new Set(["description", "x-vllm"]);
