import { join } from "node:path";
import { ROOT } from "../../codegen/generate.js";
import { loadSchemas } from "../../codegen/passes/load-schemas.js";
import type { SchemaSet } from "../../codegen/schema.js";

/** The repository's own schemas. */
export const SCHEMAS: SchemaSet = await loadSchemas(join(ROOT, "schema"));

// biome-ignore lint/suspicious/noExplicitAny: a test changes what the type forbids to change.
type Changeable = any;

/** A copy of the schemas in which one type was changed. */
export function withChanged(family: string, type: string, change: (schema: Changeable) => void): SchemaSet {
  const copy: SchemaSet = structuredClone(SCHEMAS);
  change(copy.files.find((file) => file.family === family)!.schema.$defs![type]);
  return copy;
}
