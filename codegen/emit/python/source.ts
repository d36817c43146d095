/** Columns of a line of generated Python. */
const WIDTH = 110;

/** A docstring at the given indentation: one line when it fits, else a block of wrapped lines. */
export function docstring(indent: string, ...paragraphs: readonly string[]): string[] {
  const texts = paragraphs.filter((paragraph) => paragraph !== "").map(escaped);
  const [only = ""] = texts;
  const line = `${indent}"""${only}"""`;
  if (texts.length === 1 && line.length <= WIDTH) return [line];
  const blocks = texts.map((text, index) =>
    wrapped(index === 0 ? `${indent}"""` : indent, text, indent).join("\n"),
  );
  return [blocks.join("\n\n"), `${indent}"""`];
}

/** A comment of whole lines at the given indentation. */
export function comment(indent: string, text: string): string[] {
  const head = `${indent}# `;
  return wrapped(head, text, head);
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"""', '\\"\\"\\"');
}

/** Words in lines of bounded width: the first starts with `first`, the others with `head`. */
function wrapped(first: string, text: string, head: string): string[] {
  const lines: string[] = [];
  let line = first;
  let empty = true;
  for (const word of text.split(" ")) {
    if (!empty && line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = head;
      empty = true;
    }
    line += empty ? word : ` ${word}`;
    empty = false;
  }
  return [...lines, line];
}
