/** A text without line breaks, so that one message stays one line. */
export function oneLine(text: string): string {
  return printable(text.trim().replace(/\s*[\r\n]+\s*/g, " "));
}

/** A text with control characters escaped: names and keys come from outside and must not steer a terminal. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]/gu, (character) => {
    const code = character.charCodeAt(0).toString(16).padStart(4, "0");
    return `\\u${code}`;
  });
}

/** `1 key`, `2 keys`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** Lines of aligned columns, two spaces apart. Numbers and texts that look like numbers go to the right. */
export function table(rows: readonly (readonly (string | number)[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows)
    for (const [column, cell] of row.entries())
      widths[column] = Math.max(widths[column] ?? 0, String(cell).length);
  return rows.map((row) =>
    row
      .map((cell, column) => {
        const text = String(cell);
        return typeof cell === "number" ? text.padStart(widths[column]!) : text.padEnd(widths[column]!);
      })
      .join("  ")
      .trimEnd(),
  );
}
