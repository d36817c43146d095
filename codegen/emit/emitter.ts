import type { ReleaseModel } from "../../src/wire/model.js";
import type { ResolvedRelease } from "../schema.js";

/** What every emitter gets. Releases stand in order, oldest first, in both lists. */
export interface EmitInput {
  /** What the types are, free of any language. */
  readonly models: readonly ReleaseModel[];
  /** The same as JSON Schema, for tools that read nothing else. */
  readonly resolved: readonly ResolvedRelease[];
  /** The lines that every file starts with, in the comment syntax of its language. */
  readonly banner: readonly string[];
}

/** Path under the target's folder -> content. */
export type EmittedFiles = Map<string, string>;

/** Pass 5, one a target: turns the model into files. */
export type Emitter = (input: EmitInput) => Promise<EmittedFiles>;
