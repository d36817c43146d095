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

function declaredNames(statement: ts.Statement): string[] {
  if (ts.isVariableStatement(statement))
    return statement.declarationList.declarations.map(({ name }) => name.getText());
  const { name } = statement as ts.Statement & { readonly name?: ts.Identifier };
  return [name?.text ?? "default"];
}

/** Whether a doc comment with words in it stands right before the declaration. */
function hasDocComment(statement: ts.Statement): boolean {
  return ts
    .getJSDocCommentsAndTags(statement)
    .filter(ts.isJSDoc)
    .some((doc) => /[\p{L}\p{N}]/u.test(doc.getText()));
}
