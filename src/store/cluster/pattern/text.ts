/** A pattern that is being read. Positions count UTF-16 units from 0. */
export class PatternText {
  at = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  get atEnd(): boolean {
    return this.at === this.#text.length;
  }

  /** Whether `expected` comes next. */
  sees(expected: string): boolean {
    return this.#text.startsWith(expected, this.at);
  }

  /** Reads `expected` if it comes next; says whether it did. */
  take(expected: string): boolean {
    const there = this.sees(expected);
    if (there) this.at += expected.length;
    return there;
  }

  /** Reads what a sticky expression matches here. */
  takeMatch(sticky: RegExp): RegExpExecArray | null {
    sticky.lastIndex = this.at;
    const match = sticky.exec(this.#text);
    if (match) this.at = sticky.lastIndex;
    return match;
  }

  /** Reads one character; "" at the end. */
  next(): string {
    if (this.atEnd) return "";
    const character = String.fromCodePoint(this.#text.codePointAt(this.at)!);
    this.at += character.length;
    return character;
  }

  /** The text between two positions. */
  since(start: number, end: number): string {
    return this.#text.slice(start, end);
  }
}
