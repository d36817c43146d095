import type { SchemaFailure, SchemaValidator } from "./schema-error.js";
import type { RuleSchema } from "./schema-words.js";

export type { SchemaValidator } from "./schema-error.js";

/** Where a validator of ajv's stands in the value that is checked; handed from one to the next. */
interface Place {
  readonly [name: string]: unknown;
}

/** What ajv compiles. */
type CompiledValidator = SchemaValidator & ((data: unknown, place?: Place) => boolean);

/**
 * A validator that is made by its first call. A codec that nobody validates with costs neither the schema's objects nor
 * the compilation of its functions.
 *
 * @param make makes what ajv compiled.
 */
export function lazyValidator(make: () => CompiledValidator): SchemaValidator {
  let made: CompiledValidator | undefined;
  const validator: CompiledValidator = (data: unknown, place?: Place): boolean => {
    made ??= make();
    const valid = made(data, place);
    validator.errors = made.errors ?? null;
    return valid;
  };
  return validator;
}

/** One reason why a value does not keep to its schema, as compiled validators tell it. */
export function failure(
  instancePath: string,
  keyword: string,
  params: SchemaFailure["params"],
  parentSchema: RuleSchema,
  data: unknown,
): SchemaFailure {
  return { keyword, instancePath, params, parentSchema, data };
}
