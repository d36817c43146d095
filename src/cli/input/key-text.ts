import { describe } from "../../errors.js";
import { UsageError } from "../usage-error.js";

/** What of an option's text enters keys. */
export interface KeyTexts {
  readonly model?: string | undefined;
  readonly modelName?: string | undefined;
  readonly cachePrefix?: string | undefined;
  readonly storeNamespace?: string | undefined;
}

const FLAGS: Readonly<Record<keyof KeyTexts, string>> = {
  model: "--model",
  modelName: "--model-name",
  cachePrefix: "--cache-prefix",
  storeNamespace: "--store-namespace",
};

/**
 * Checks what enters keys: keys are written one a line, so that a line end in one would make two of it, and no engine has a
 * control character there.
 *
 * @throws UsageError that names the option; without a model, or with two.
 */
export function checkKeyTexts(texts: KeyTexts): void {
  const { model, modelName } = texts;
  if ((model === undefined) === (modelName === undefined))
    throw new UsageError("give either --model, the path that the engine loads, or --model-name");
  if (modelName === "") throw new UsageError("--model-name is empty; a key needs a model");
  for (const name of Object.keys(FLAGS) as (keyof KeyTexts)[])
    if (/[\p{Cc}\u2028\u2029]/u.test(texts[name] ?? ""))
      throw new UsageError(
        `${FLAGS[name]} ${describe(texts[name])} has a control character; a key is printable text on one line`,
        { option: FLAGS[name] },
      );
}
