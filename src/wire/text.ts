/** Number of code points of a text, which is how JSON Schema counts its length. A lone surrogate counts as one. */
export function codePointLength(text: string): number {
  let pairs = 0;
  for (let index = 1; index < text.length; index++)
    if (isLow(text.charCodeAt(index)) && isHigh(text.charCodeAt(index - 1))) pairs++;
  return text.length - pairs;
}

/** Whether a text can be written as UTF-8 and read back: it has no half of a surrogate pair on its own. */
export function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000;
}
