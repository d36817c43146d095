import { MooncakeKvError } from "../../errors.js";

/**
 * The value of a JSON text. The text may hold a password, so the error says where it is wrong and quotes nothing of it, as
 * that of `JSON.parse` does.
 *
 * @param what names the text in the error.
 * @throws MooncakeKvError `ERR_CONFIG` with line and column, both from 1, when it is no JSON.
 */
export function parseJsonText(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const before = text.slice(0, jsonErrorOffset(text)).split("\n");
    const [line, column] = [before.length, before.at(-1)!.length + 1];
    throw new MooncakeKvError("ERR_CONFIG", `${what} is no JSON at line ${line}, column ${column}`, {
      line,
      column,
    });
  }
}

/** What kind of JSON a value is, for an error that must not quote it. */
export function jsonKind(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return value.length === 0 ? "[]" : "a list";
  return typeof value === "string" ? "text" : `a ${typeof value}`;
}

/** Blanks, then one token, if there is one: punctuation, text, or a number or literal. */
const TOKEN =
  /[ \t\r\n]*(?:([{}[\],:])|("[ !#-[\]-\uffff]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[ !#-[\]-\uffff]*)*")|(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])|)/y;

type Due = "value" | "value or ]" | "name" | "name or }" | ":" | ", or end";

/** Where a text that is no JSON stops being some: the offset of the first token that can't stand there. */
function jsonErrorOffset(text: string): number {
  /** The brackets that are open. */
  const open: string[] = [];
  let due: Due | undefined = "value";
  TOKEN.lastIndex = 0;
  for (;;) {
    const [all, mark, quoted] = TOKEN.exec(text)!;
    const start = TOKEN.lastIndex - all.trimStart().length;
    const token = mark ?? (quoted === undefined ? (all.trimStart() === "" ? "" : "other") : "text");
    due = dueAfter(token, due, open);
    if (due === undefined) return start;
  }
}

/** What may follow a token; undefined when the token itself may not stand there. Keeps `open` up to date. */
function dueAfter(token: string, due: Due, open: string[]): Due | undefined {
  const closes = open.at(-1) === "{" ? "}" : "]";
  if (token === closes && open.length > 0 && (due === ", or end" || due.endsWith(closes))) {
    open.pop();
    return ", or end";
  }
  switch (due) {
    case ":":
      return token === ":" ? "value" : undefined;
    case "name":
    case "name or }":
      return token === "text" ? ":" : undefined;
    case ", or end":
      if (token !== "," || open.length === 0) return undefined;
      return open.at(-1) === "{" ? "name" : "value";
    default:
      if (token === "text" || token === "other") return ", or end";
      if (token !== "{" && token !== "[") return undefined;
      open.push(token);
      return token === "{" ? "name or }" : "value or ]";
  }
}
