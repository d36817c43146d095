/**
 * Python's `str()` of a JSON value: options that vLLM turns into text, whatever their type, end up in keys. A whole
 * number that was written with a fraction (`1.0`) can't be told from `1` here.
 */
export function pythonText(value: unknown): string {
  return typeof value === "string" ? value : pythonRepr(value);
}

function pythonRepr(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "string") return quoted(value);
  if (Array.isArray(value)) return `[${value.map(pythonRepr).join(", ")}]`;
  if (typeof value === "object")
    return `{${Object.entries(value)
      .map(([name, member]) => `${quoted(name)}: ${pythonRepr(member)}`)
      .join(", ")}}`;
  return String(value);
}

function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replaceAll("\\", "\\\\").replaceAll(quote, `\\${quote}`);
  return `${quote}${escaped.replaceAll("\n", "\\n").replaceAll("\r", "\\r").replaceAll("\t", "\\t")}${quote}`;
}
