import type { AnyCodec } from "../../../generated/typescript/by-name.js";
import { jsonText } from "../json.js";
import type { Output } from "../output.js";
import { oneLine } from "../text.js";
import type { Invalid } from "./check-value.js";

/** Characters of errors that a report as JSON holds; the others are counted. */
const MAX_ERRORS = 16 << 20;

/** What a validation found, for a person: wrong values are told as they come. */
export class TextReport {
  readonly #stdout: Output;
  readonly #many: boolean;
  #total = 0;
  #invalid = 0;

  /** @param many whether the input has many values, which are then named and counted. */
  constructor(stdout: Output, many: boolean) {
    this.#stdout = stdout;
    this.#many = many;
  }

  /** Counts a value, and tells what is wrong with it. */
  async add(invalid: Invalid | undefined): Promise<void> {
    this.#total++;
    if (invalid === undefined) return;
    this.#invalid++;
    if (this.#many) await this.#stdout.line(`${invalid.where}: ${oneLine(invalid.problem)}`);
    else await this.#stdout.write(oneLine(invalid.problem));
  }

  /** The last line. */
  end(): string {
    const [total, invalid] = [this.#total, this.#invalid];
    if (!this.#many) return invalid === 0 ? "ok" : "";
    return invalid === 0 ? `ok: ${total} valid` : `${total - invalid} of ${total} valid`;
  }
}

/** The same as one JSON object, of bounded size. */
export class JsonReport {
  readonly #codec: AnyCodec;
  readonly #errors: string[] = [];
  #length = 0;
  #total = 0;
  #invalid = 0;

  constructor(codec: AnyCodec) {
    this.#codec = codec;
  }

  /** Counts a value, and keeps what is wrong with it. */
  async add(invalid: Invalid | undefined): Promise<void> {
    this.#total++;
    if (invalid === undefined) return;
    this.#invalid++;
    if (this.#length > MAX_ERRORS) return;
    const text = jsonText(errorJson(invalid));
    this.#length += text.length;
    if (this.#length <= MAX_ERRORS) this.#errors.push(text);
  }

  /** The object. */
  end(): string {
    const { type, release } = this.#codec;
    const valid = this.#total - this.#invalid;
    const leftOut = this.#invalid - this.#errors.length;
    const head = jsonText({ type, release, total: this.#total, valid, errors_left_out: leftOut });
    return `${head.slice(0, -1)},"errors":[${this.#errors.join(",")}]}`;
  }
}

function errorJson({ index, line, problem, details = {} }: Invalid): Record<string, unknown> {
  return {
    index,
    line: line ?? null,
    path: details["path"] ?? "$",
    value: details["value"] ?? null,
    rule: details["rule"] ?? null,
    message: problem,
  };
}
