import { inspect } from "node:util";

// Loaded before every test file. uvu prints `error.details` as a text; our errors have an object there, on which its
// `split` is missing, and uvu then stops without a word. Only tests see this.
Object.defineProperty(Object.prototype, "split", {
  configurable: true,
  enumerable: false,
  writable: true,
  value(this: unknown, separator: RegExp): string[] {
    return inspect(this, { depth: 3 }).split(separator);
  },
});
