import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { MooncakeKvError } from "../../errors.js";

/** The text that ships with the package and stands for a long prompt. */
const PROMPT_FILE = "LICENSE";

/** The token ids of the text that ships with the package. @throws MooncakeKvError `ERR_CONFIG` as `tokenizeForGptOss`. */
export async function promptTokens(packageRoot: string): Promise<Uint32Array> {
  return tokenizeForGptOss(await readFile(join(packageRoot, PROMPT_FILE), "utf8"));
}

/**
 * Token ids of a text under gpt-oss's tokenizer.
 *
 * @throws MooncakeKvError `ERR_CONFIG` where the optional package gpt-tokenizer is not installed.
 */
export async function tokenizeForGptOss(text: string): Promise<Uint32Array> {
  try {
    const { encode } = await import("gpt-tokenizer/encoding/o200k_harmony");
    return Uint32Array.from(encode(text));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new MooncakeKvError(
      "ERR_CONFIG",
      "the demo needs gpt-oss's tokenizer, which is an optional package: npm install gpt-tokenizer",
      {},
      { cause: error },
    );
  }
}
