import { describe, MooncakeKvError } from "../errors.js";

/**
 * The model segment of a key: the last part of the model path, trailing slashes removed first. Mirrors the rule of
 * vLLM's `MooncakeStoreWorker`. A served model name plays no part in keys.
 *
 * @throws MooncakeKvError `ERR_KEY` when nothing is left.
 */
export function modelBasename(model: string): string {
  const name = typeof model === "string" ? (model.replace(/\/+$/, "").split("/").at(-1) ?? "") : "";
  if (name === "")
    throw new MooncakeKvError(
      "ERR_KEY",
      `model ${describe(model)} has no last path component to name keys by`,
      {
        model,
      },
    );
  return name;
}

/** What may be wrong with a model path as the source of keys; empty when nothing is. */
export function modelNameWarnings(model: string): string[] {
  const name = modelBasename(model);
  const warnings: string[] = [];
  if (/^[0-9a-f]{8,64}$/.test(name))
    warnings.push(
      `the model segment ${JSON.stringify(name)} looks like a snapshot id: engines that load the model under another path make other keys`,
    );
  if (name !== model && !warnings.length)
    warnings.push(
      `only ${JSON.stringify(name)} of the path enters the keys: models of one name in different folders collide; give them different cache prefixes`,
    );
  return warnings;
}
