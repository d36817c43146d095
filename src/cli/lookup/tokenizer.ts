import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, MooncakeKvError } from "../../errors.js";
import { readTextFile } from "../input/read-input.js";
import { UsageError } from "../usage-error.js";

/** How to make token ids of a text. */
export interface TokenizeOptions {
  /** Path of the model's `tokenizer.json`; a `tokenizer_config.json` beside it is read too. */
  readonly tokenizer: string;
  /** Whether to add what the model wants around a text, such as a beginning-of-sequence token. Default: true. */
  readonly specialTokens?: boolean | undefined;
}

/**
 * Token ids of a text under a model's own tokenizer.
 *
 * @throws MooncakeKvError `ERR_CONFIG` where the optional package @huggingface/tokenizers is not installed; UsageError for
 * files that are no tokenizer.
 */
export async function tokenize(text: string, options: TokenizeOptions): Promise<Uint32Array> {
  const path = options.tokenizer;
  const description = await readJson(path);
  if (description === undefined) throw new UsageError(`there is no file ${describe(path, 200)}`, { path });
  const config = (await readJson(join(dirname(path), "tokenizer_config.json"))) ?? {};
  const { Tokenizer } = await loadTokenizers();
  let ids: readonly (number | bigint)[];
  try {
    const tokenizer = new Tokenizer(description, config);
    ids = tokenizer.encode(text, { add_special_tokens: options.specialTokens ?? true }).ids;
  } catch (cause) {
    throw new UsageError(
      `${describe(path, 200)} is no tokenizer that can be used: ${(cause as Error).message}`,
      { path },
      { cause },
    );
  }
  return Uint32Array.from(ids, Number);
}

async function loadTokenizers(): Promise<typeof import("@huggingface/tokenizers")> {
  try {
    return await import("@huggingface/tokenizers");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw cause;
    throw new MooncakeKvError(
      "ERR_CONFIG",
      "a text needs the optional package @huggingface/tokenizers: npm install @huggingface/tokenizers",
      { package: "@huggingface/tokenizers" },
      { cause },
    );
  }
}

/** The object of a JSON file; undefined where there is no file. */
async function readJson(path: string): Promise<object | undefined> {
  if (!existsSync(path)) return undefined;
  const text = await readTextFile(path);
  try {
    const value = JSON.parse(text) as unknown;
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // Said below, as for JSON of another kind.
  }
  throw new UsageError(`${describe(path, 200)} holds no JSON object`, { path });
}
