// The tokens of an engine without a model.

/** The body of a request. */
export type Json = Record<string, unknown>;

/** Words as token ids: the same word is the same token. */
export function tokenize(text: string): number[] {
  return text
    .split(/\s+/)
    .filter((word) => word !== "")
    .map((word) => [...word].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)!) % 50_000, 7));
}

/** The text of a request for completions, of either kind. */
function textOf(body: Json): string | undefined {
  const { prompt, messages } = body;
  if (typeof prompt === "string") return prompt;
  if (!Array.isArray(messages)) return undefined;
  return (messages as { role: string; content: string }[])
    .map(({ role, content }) => `<${role}> ${content}`)
    .join(" ");
}

/** The tokens of a request for completions, of either kind; undefined where it makes no sense. */
export function tokensOf(body: Json): number[] | undefined {
  const { prompt } = body;
  const given =
    Array.isArray(prompt) &&
    prompt.every((token) => Number.isInteger(token) && token >= 0 && token < 2 ** 32);
  const tokens = given ? (prompt as number[]) : tokenize(textOf(body) ?? "");
  return tokens.length > 0 ? tokens : undefined;
}
