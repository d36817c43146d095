import { MooncakeKvError } from "../../errors.js";

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
