/** Columns of a line of generated Python. */
const WIDTH = 110;

/** A docstring at the given indentation: one line when it fits, else a block of wrapped lines. */
export function docstring(indent: string, ...paragraphs: readonly string[]): string[] {
  const texts = paragraphs.filter((paragraph) => paragraph !== "").map(escaped);
  const [only = ""] = texts;
  const line = `${indent}"""${only}"""`;
  if (texts.length === 1 && line.length <= WIDTH) return [line];
  const blocks = texts.map((text) => wrapped(indent, text).join("\n"));
  return [`${indent}"""${blocks.join("\n\n").trimStart()}`, `${indent}"""`];
}

/** A comment of whole lines at the given indentation. */
export function comment(indent: string, text: string): string[] {
  return wrapped(`${indent}# `, text);
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"""', '\\"\\"\\"');
}

function wrapped(head: string, text: string): string[] {
  const lines: string[] = [];
  let line = head;
  for (const word of text.split(" ")) {
    if (line !== head && line.length + word.length >= WIDTH) {
      lines.push(line);
      line = head;
    }
    line += line === head ? word : ` ${word}`;
  }
  return [...lines, line];
}
