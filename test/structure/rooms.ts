import { dirname, join, relative, sep } from "node:path";
import ts from "typescript";

/** Rooms in the order in which they may import: each from those before it. */
export const ROOMS = [
  "checks",
  "wire",
  "generated",
  "hash",
  "key",
  "chunk",
  "layout",
  "request",
  "coordinator",
  "native",
  "store",
  "lookup",
  "events",
  "connector",
  "service",
  "conformance",
  "testing",
  "cli",
] as const;

/** Rooms without I/O, addon, clock or environment. */
const PURE = ROOMS.slice(0, ROOMS.indexOf("native"));

/** What stands outside of the rooms: anybody may import the shared files, the entry imports rooms and is imported by none. */
const SHARED = ["src/errors.ts", "src/release.ts", "src/python-text.ts"];
const ENTRY = "src/index.ts";

/** What a pure room may import that is no file of its own house: libraries that compute, and the port to the platform. */
const PURE_MODULES = ["#platform", "@msgpack/msgpack", "hash-wasm"];

/** What lies behind `#platform`: one file a kind of place, which only the package's import map names. */
const PLATFORM = "src/platform/";

/** Names through which a clock, the environment or the outside world is reached. */
const IMPURE_NAMES = new Set([
  "process",
  "Date",
  "performance",
  "fetch",
  "setTimeout",
  "setInterval",
  "require",
  "Buffer",
  "setImmediate",
  "console",
  "globalThis",
]);

/** Breaches of the order of the rooms in one source file. `file` is relative to the repository, with `/`. */
export function roomBreaches(file: string, text: string): string[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const own = roomOf(file);
  const pure = PURE.includes(own as (typeof PURE)[number]) || SHARED.includes(file) || file === ENTRY;
  const breaches: string[] = [];
  const visit = (node: ts.Node): void => {
    const specifier = importSpecifier(node);
    if (specifier !== undefined) {
      const breach = importBreach(file, own, pure, specifier);
      if (breach) breaches.push(breach);
    }
    if (
      pure &&
      ts.isIdentifier(node) &&
      IMPURE_NAMES.has(node.text) &&
      isReference(node) &&
      !isShadowed(node)
    )
      breaches.push(`${file}: ${node.text} in a pure room`);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return breaches;
}

/** The room of a file; undefined where it has none. */
function roomOf(file: string): string | undefined {
  const [top, second, third] = file.split("/");
  if (top === "generated") return "generated";
  if (file.startsWith(PLATFORM)) return undefined;
  return top === "src" && third !== undefined ? second : undefined;
}

/** The module that an import, a re-export, an import type or a dynamic import names. */
function importSpecifier(node: ts.Node): string | undefined {
  if ((ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && node.moduleSpecifier)
    return (node.moduleSpecifier as ts.StringLiteral).text;
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument))
    return (node.argument.literal as ts.StringLiteral).text;
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
    const [argument] = node.arguments;
    return argument && ts.isStringLiteralLike(argument) ? argument.text : "(computed)";
  }
  return undefined;
}

function importBreach(
  file: string,
  own: string | undefined,
  pure: boolean,
  specifier: string,
): string | undefined {
  const breach = (reason: string) => `${file}: imports ${specifier}, ${reason}`;
  if (specifier === "(computed)") return pure ? breach("which nobody can check") : undefined;
  if (!specifier.startsWith(".")) {
    return pure && !PURE_MODULES.includes(specifier) ? breach("which is not pure") : undefined;
  }
  const target = relative(".", join(dirname(file), specifier))
    .split(sep)
    .join("/")
    .replace(/\.js$/, ".ts");
  if (SHARED.includes(target)) return undefined;
  if (SHARED.includes(file)) return breach("beyond the shared files");
  const room = roomOf(target);
  if (room === undefined) return breach("which lies in no room");
  const inside = partBreach(file, target) ?? storeBreach(file, target);
  if (inside) return breach(inside);
  const to = ROOMS.indexOf(room as (typeof ROOMS)[number]);
  if (to < 0) return breach(`whose room ${room} is unknown`);
  if (file === ENTRY)
    return PURE.includes(room as (typeof PURE)[number]) ? undefined : breach("which is not pure");
  const from = ROOMS.indexOf(own as (typeof ROOMS)[number]);
  if (from < 0) return breach(`from the unknown room ${own}`);
  return to <= from ? undefined : breach(`a later room than ${own}`);
}

/** Rooms with parts, and what each part may import of its room besides itself and the files right in the room. */
const PARTS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  coordinator: { spec: [], search: ["spec"], lookup: ["spec", "search"] },
  connector: { scheduler: [], worker: ["metrics"], metrics: [] },
};

/** A breach of the order inside a room with parts. */
function partBreach(file: string, target: string): string | undefined {
  const [room, from] = file.split("/").slice(1, -1);
  const [targetRoom, to] = target.split("/").slice(1, -1);
  const parts = PARTS[room ?? ""];
  if (parts === undefined || from === undefined || to === undefined || room !== targetRoom) return undefined;
  return from === to || parts[from]?.includes(to) ? undefined : `which ${room}/${from} may not know`;
}

/** What the parts of the store that are no backend may import of it. */
const STORE_PARTS: Readonly<Record<string, readonly string[]>> = {
  shared: ["shared"],
  cluster: ["shared", "cluster"],
};

/** The port, which every backend implements. */
const STORE_PORT = "src/store/backend.ts";

/** A breach of the order inside the store: a backend imports the port, `shared`, `cluster` and its own folder. */
function storeBreach(file: string, target: string): string | undefined {
  const from = storePart(file);
  if (from === undefined || !target.startsWith("src/store/")) return undefined;
  const to = storePart(target);
  const allowed = STORE_PARTS[from] ?? ["shared", "cluster", from];
  if (to !== undefined && allowed.includes(to)) return undefined;
  if (target === STORE_PORT && STORE_PARTS[from] === undefined) return undefined;
  return `which store/${from} may not know`;
}

/** The folder of the store in which a file lies; undefined for the files above them. */
function storePart(file: string): string | undefined {
  const [, part, name] = /^src\/store\/([^/]+)\/(.+)$/.exec(file) ?? [];
  return name === undefined ? undefined : part;
}

/** Whether an enclosing block of code declares the name itself, which hides the global one. */
function isShadowed(node: ts.Identifier): boolean {
  for (let scope: ts.Node | undefined = node.parent; scope; scope = scope.parent) {
    if (ts.isFunctionLike(scope) && scope.parameters.some(({ name }) => name.getText() === node.text))
      return true;
    if (ts.isBlock(scope) && scope.statements.some((statement) => declares(statement, node.text)))
      return true;
  }
  return false;
}

function declares(statement: ts.Statement, name: string): boolean {
  return (
    ts.isVariableStatement(statement) &&
    statement.declarationList.declarations.some((declaration) => declaration.name.getText() === name)
  );
}

/** Whether a name is read, rather than a member, a property name or a type of one's own that happens to be called so. */
function isReference(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node;
  if (ts.isPropertyAssignment(parent) || ts.isPropertySignature(parent) || ts.isMethodSignature(parent))
    return parent.name !== node;
  return (
    !ts.isPropertyDeclaration(parent) && !ts.isMethodDeclaration(parent) && !ts.isTypeReferenceNode(parent)
  );
}
