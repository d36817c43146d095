import ts from "typescript";

/** Exported declarations of a source file that have no doc comment, as `file:line name`. Re-exports have theirs elsewhere. */
export function undocumentedExports(file: string, text: string): string[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const documented = new Set<string>();
  const missing = new Map<string, string>();
  for (const statement of source.statements) {
    const exported =
      ts.canHaveModifiers(statement) &&
      ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
    if (!exported) continue;
    for (const name of declaredNames(statement)) {
      // One comment is enough for the overloads of a function, and for a type and a value of one name.
      if (hasDocComment(statement)) documented.add(name);
      const line = source.getLineAndCharacterOfPosition(statement.getStart()).line + 1;
      if (!missing.has(name)) missing.set(name, `${file}:${line} ${name}`);
    }
  }
  return [...missing].filter(([name]) => !documented.has(name)).map(([, place]) => place);
}

/**
 * Members of exported interfaces, and public members of exported classes, that have no doc comment, as `file:line
 * Type.member`. What only implements or overrides something has its comment there: constructors, iterators, disposal.
 */
export function undocumentedMembers(file: string, text: string): string[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const missing: string[] = [];
  for (const statement of source.statements) {
    if (!ts.isInterfaceDeclaration(statement) && !ts.isClassDeclaration(statement)) continue;
    if (!statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) continue;
    const documented = new Set<string>();
    const found = new Map<string, number>();
    for (const member of statement.members) {
      if (member.name === undefined || !ts.isIdentifier(member.name) || isHidden(member)) continue;
      const name = member.name.text;
      if (hasDocComment(member)) documented.add(name);
      found.set(name, source.getLineAndCharacterOfPosition(member.getStart()).line + 1);
    }
    for (const [name, line] of found)
      if (!documented.has(name)) missing.push(`${file}:${line} ${statement.name?.text}.${name}`);
  }
  return missing;
}

function isHidden(member: ts.ClassElement | ts.TypeElement): boolean {
  const modifiers = ts.canHaveModifiers(member) ? (ts.getModifiers(member) ?? []) : [];
  return modifiers.some(
    ({ kind }) =>
      kind === ts.SyntaxKind.PrivateKeyword ||
      kind === ts.SyntaxKind.ProtectedKeyword ||
      kind === ts.SyntaxKind.OverrideKeyword,
  );
}

function declaredNames(statement: ts.Statement): string[] {
  if (ts.isVariableStatement(statement))
    return statement.declarationList.declarations.map(({ name }) => name.getText());
  const { name } = statement as ts.Statement & { readonly name?: ts.Identifier };
  return [name?.text ?? "default"];
}

/** Whether a doc comment with words in it stands right before the declaration. */
function hasDocComment(statement: ts.Node): boolean {
  return ts
    .getJSDocCommentsAndTags(statement)
    .filter(ts.isJSDoc)
    .some((doc) => /[\p{L}\p{N}]/u.test(doc.getText()));
}
