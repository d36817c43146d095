import standalone from "ajv/dist/standalone/index.js";
import { ts } from "ts-morph";
import type { FamilyModel, ReleaseModel } from "../../../src/wire/model.js";
import type { ResolvedRelease } from "../../schema.js";
import { createReleaseAjv } from "../../vocabulary.js";
import { validatorName } from "./names.js";

const HELPERS: Readonly<Record<string, string>> = {
  'require("ajv/dist/runtime/ucs2length").default': "codePointLength",
};

/** A piece of ajv's output: a constant or a function. */
interface Piece {
  readonly text: string;
  /** Other pieces that it mentions. */
  readonly mentions: readonly string[];
}

/** What ajv compiled for one release, taken apart so that each type is loaded by itself. */
export interface CompiledValidators {
  /** Pieces by their names, in ajv's order. */
  readonly pieces: ReadonlyMap<string, Piece>;
  /** By the name of a function: the type that it validates. */
  readonly typeOf: ReadonlyMap<string, string>;
}

/** Compiles the schemas of a release, and takes ajv's one module apart. */
export function compileValidators(resolved: ResolvedRelease): CompiledValidators {
  const names = Object.keys(resolved.schema.$defs);
  const code = standalone.default(
    createReleaseAjv(resolved),
    Object.fromEntries(names.map((name) => [name, name])),
  );
  const source = ts.createSourceFile(
    "validators.js",
    withoutPlaces(withShortFailures(withoutHelpers(resolved.release, code))),
    ts.ScriptTarget.Latest,
    true,
  );
  const typeOf = new Map<string, string>();
  const texts = new Map<string, string>();
  for (const statement of source.statements) {
    const exported = EXPORT.exec(statement.getText());
    if (exported) typeOf.set(exported[2]!, exported[1]!);
    else for (const name of declaredBy(statement)) texts.set(name, statement.getText());
  }
  const pieces = new Map(
    [...texts].map(([name, text]) => [name, { text, mentions: mentioned(text, name, texts) }] as const),
  );
  return { pieces, typeOf };
}

/**
 * The module with the compiled validators of one family. ajv writes JavaScript, so the module opts out of type checks;
 * what it exports is typed by hand. A validator is made by its first call: until then its code is text to the engine.
 */
export function validatorModule(
  model: ReleaseModel,
  family: FamilyModel,
  compiled: CompiledValidators,
): string {
  const homes = new Map(model.families.flatMap(({ name, types }) => types.map((type) => [type.name, name])));
  const foreign = new Map<string, Set<string>>();
  const body = family.types.map(({ name }) => {
    const { lines, others } = validatorOf(name, compiled);
    for (const other of others) {
      const home = homes.get(other)!;
      if (home !== family.name) foreign.set(home, (foreign.get(home) ?? new Set()).add(validatorName(other)));
    }
    return [
      `/** Whether a JSON value keeps to the schema of \`${name}\`. A failed check leaves its reasons in \`errors\`. */`,
      `export const ${validatorName(name)}: SchemaValidator = /* @__PURE__ */ lazyValidator(() => {`,
      ...lines,
      "});",
      "",
    ].join("\n");
  });
  const text = body.join("\n");
  return [
    "// @ts-nocheck: ajv made the JavaScript in here; only what is exported is typed.",
    'import { failure, lazyValidator, type SchemaValidator } from "../../../src/wire/lazy-validator.js";',
    ...(text.includes("codePointLength")
      ? ['import { codePointLength } from "../../../src/wire/text.js";']
      : []),
    ...[...foreign]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([home, names]) => `import { ${[...names].sort().join(", ")} } from "./${home}-validators.js";`),
    "",
    text,
  ].join("\n");
}

const EXPORT = /^export const (\w+) = (\w+);$/;

/** The body of the function that makes a type's validator, and the other types whose validators it calls. */
function validatorOf(
  type: string,
  { pieces, typeOf }: CompiledValidators,
): { readonly lines: string[]; readonly others: ReadonlySet<string> } {
  const [main] = [...typeOf].find(([, name]) => name === type)!;
  const needed = new Set<string>();
  const others = new Set<string>();
  const aliases: string[] = [];
  const visit = (name: string): void => {
    if (needed.has(name)) return;
    needed.add(name);
    const other = typeOf.get(name);
    if (other !== undefined && name !== main) {
      others.add(other);
      aliases.push(`const ${name} = ${validatorName(other)};`);
      return;
    }
    for (const mention of pieces.get(name)!.mentions) visit(mention);
  };
  visit(main);
  const own = [...pieces].filter(
    ([name]) => needed.has(name) && (name === main || typeOf.get(name) === undefined),
  );
  return { lines: [...aliases, ...own.map(([, { text }]) => text), `return ${main};`], others };
}

/** The names of what a statement declares. */
function declaredBy(statement: ts.Statement): string[] {
  if (ts.isFunctionDeclaration(statement)) return [statement.name!.text];
  if (ts.isVariableStatement(statement))
    return statement.declarationList.declarations.map(({ name }) => name.getText());
  if (ts.isExpressionStatement(statement) && ts.isStringLiteral(statement.expression)) return [];
  throw new Error(`ajv wrote a statement that nobody expects: ${statement.getText().slice(0, 80)}`);
}

function mentioned(text: string, own: string, all: ReadonlyMap<string, string>): string[] {
  const words = new Set(text.match(/\b(?:validate|schema|func|pattern|formats)\d+\b/g));
  return [...words].filter((word) => word !== own && all.has(word));
}

/** A failure as ajv writes it: an object of seven members, two of which nobody reads. */
const FAILURE =
  /\{instancePath(?::([^\n]*?))?,schemaPath:"(?:[^"\\]|\\.)*",keyword:"([\w-]+)",params:([^\n]*?),schema:[^\n]*?,parentSchema:([^\n,]+),data(?::(\w+))?\}/g;

/** Writes each failure as a short call, since a validator consists of little else. */
function withShortFailures(code: string): string {
  const short = code.replace(
    FAILURE,
    (_match, path = "instancePath", keyword: string, params: string, schema: string, data = "data") =>
      `failure(${path}, ${JSON.stringify(keyword)}, ${params}, ${schema}, ${data})`,
  );
  const leftOver = /keyword:"[^\n]*/.exec(short);
  if (leftOver)
    throw new Error(`a failure is written in a way that nobody expects: ${leftOver[0].slice(0, 80)}`);
  return short;
}

/** What a validator does at its start for `unevaluatedProperties`, which no schema here has. */
const EVALUATED =
  /const evaluated0 = validate\d+\.evaluated;\nif\(evaluated0\.dynamicProps\)\{\nevaluated0\.props = undefined;\n\}\nif\(evaluated0\.dynamicItems\)\{\nevaluated0\.items = undefined;\n\}\n/g;

/** Leaves out what a validator hands on besides the path: for references between data and for dynamic schemas. */
function withoutPlaces(code: string): string {
  const short = code
    .replace(EVALUATED, "")
    .replace(/^(?:validate\d+\.evaluated|evaluated0\.props) = .*\n/gm, "")
    .replaceAll(", parentData, parentDataProperty, rootData=data, dynamicAnchors={}}={}", "}={}")
    .replace(/,parentData[:,][^\n]*?,dynamicAnchors\}/g, "}");
  const leftOver = /[^\n]*(?:evaluated|parentData|rootData|dynamicAnchors)[^\n]*/.exec(short);
  if (leftOver)
    throw new Error(`a validator uses what was thought to be unused: ${leftOver[0].slice(0, 80)}`);
  return short;
}

/** Replaces what ajv would load from its own package at run time, and refuses what it can't replace. */
function withoutHelpers(release: string, code: string): string {
  let result = code;
  for (const [from, to] of Object.entries(HELPERS)) result = result.replaceAll(from, to);
  const leftOver = /require\([^)]*\)/.exec(result);
  if (leftOver)
    throw new Error(`the validators of ${release} need ${leftOver[0]}; the runtime must offer it`);
  return result;
}
