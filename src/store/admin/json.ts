/** A JSON value whose whole numbers are bigint: addresses and counters of the master go up to 2^64. */
export type ExactJson = null | boolean | number | bigint | string | readonly ExactJson[] | ExactJsonObject;

/** A JSON object. A map, because its keys are other people's: "__proto__" is one like any other. */
export type ExactJsonObject = ReadonlyMap<string, ExactJson>;

/** Far deeper than any answer of the master, far less than the stack. */
const DEEPEST = 32;

const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const WORDS = [
  ["true", true],
  ["false", false],
  ["null", null],
] as const;

/**
 * Parses JSON without rounding: whole numbers written without fraction and exponent become bigint. A value costs many
 * times the memory of its text, and time: text of more than `mostValues` values is refused before it is read to its end.
 *
 * @throws SyntaxError that says where the text stops being JSON, or that it is nested too deeply or has too many values.
 */
export function parseExactJson(text: string, mostValues: number): ExactJson {
  const parser = new Parser(text, mostValues);
  const value = parser.value(0);
  parser.end();
  return value;
}

class Parser {
  readonly #text: string;
  readonly #mostValues: number;
  #values = 0;
  #at = 0;

  constructor(text: string, mostValues: number) {
    this.#text = text;
    this.#mostValues = mostValues;
  }

  value(depth: number): ExactJson {
    if (depth > DEEPEST) throw new SyntaxError(`nested more than ${DEEPEST} levels deep`);
    if (++this.#values > this.#mostValues)
      throw new SyntaxError(`it has more than ${this.#mostValues} values`);
    this.#space();
    const first = this.#text[this.#at];
    if (first === "{") return this.#object(depth);
    if (first === "[") return this.#array(depth);
    if (first === '"') return this.#string();
    for (const [word, value] of WORDS)
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length;
        return value;
      }
    return this.#number();
  }

  end(): void {
    this.#space();
    if (this.#at !== this.#text.length) throw this.#unexpected();
  }

  #object(depth: number): ExactJsonObject {
    const members = new Map<string, ExactJson>();
    this.#at++;
    if (this.#taken("}")) return members;
    do {
      this.#space();
      if (this.#text[this.#at] !== '"') throw this.#unexpected();
      const name = this.#string();
      if (!this.#taken(":")) throw this.#unexpected();
      members.set(name, this.value(depth + 1));
    } while (this.#taken(","));
    if (!this.#taken("}")) throw this.#unexpected();
    return members;
  }

  #array(depth: number): ExactJson[] {
    const items: ExactJson[] = [];
    this.#at++;
    if (this.#taken("]")) return items;
    do items.push(this.value(depth + 1));
    while (this.#taken(","));
    if (!this.#taken("]")) throw this.#unexpected();
    return items;
  }

  #string(): string {
    const start = this.#at;
    let end = this.#text.indexOf('"', start + 1);
    while (end >= 0 && this.#escaped(start, end)) end = this.#text.indexOf('"', end + 1);
    if (end < 0) throw new SyntaxError(`the string at ${start} does not end`);
    this.#at = end + 1;
    const raw = this.#text.slice(start + 1, end);
    if (!raw.includes("\\")) return raw;
    return JSON.parse(this.#text.slice(start, end + 1)) as string;
  }

  /** Whether an odd number of backslashes stands before the quote at `end`. */
  #escaped(start: number, end: number): boolean {
    let before = end - 1;
    while (before > start && this.#text[before] === "\\") before--;
    return (end - 1 - before) % 2 === 1;
  }

  #number(): number | bigint {
    NUMBER.lastIndex = this.#at;
    const match = NUMBER.exec(this.#text);
    if (match === null) throw this.#unexpected();
    this.#at += match[0].length;
    const whole = match[1] === undefined && match[2] === undefined;
    return whole && match[0].length <= 40 ? BigInt(match[0]) : Number(match[0]);
  }

  #taken(sign: string): boolean {
    this.#space();
    if (this.#text[this.#at] !== sign) return false;
    this.#at++;
    return true;
  }

  #space(): void {
    for (;;) {
      const sign = this.#text[this.#at];
      if (sign !== " " && sign !== "\n" && sign !== "\t" && sign !== "\r") return;
      this.#at++;
    }
  }

  #unexpected(): SyntaxError {
    const found = this.#text[this.#at];
    return new SyntaxError(
      found === undefined ? "it ends too early" : `unexpected ${JSON.stringify(found)} at ${this.#at}`,
    );
  }
}
