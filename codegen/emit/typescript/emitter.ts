import type { EmitInput, EmittedFiles } from "../emitter.js";
import { codecStatements } from "./codecs.js";
import { eventFieldsModule } from "./event-fields.js";
import { allReleases, byName, modelModule, releaseIndex, rootIndex } from "./index-files.js";
import { interfaceStatements } from "./interfaces.js";
import { SourcePrinter } from "./source.js";
import { compileValidators, validatorModule } from "./validators.js";
import { wireTypeModule } from "./wire-types.js";

/** Pass 5 for TypeScript: every file of `generated/typescript`. */
export async function emitTypescript(input: EmitInput): Promise<EmittedFiles> {
  const printer = new SourcePrinter(input.banner.map((line) => `// ${line}\n`).join(""));
  const files: EmittedFiles = new Map();
  for (const [index, model] of input.models.entries()) {
    const resolved = input.resolved[index]!;
    const add = (name: string, text: string): void => void files.set(`${model.release}/${name}.ts`, text);
    const compiled = compileValidators(resolved);
    for (const family of model.families) {
      add(family.name, printer.statements(interfaceStatements(model, family)));
      add(`${family.name}-codecs`, printer.statements(codecStatements(model, family)));
      add(`${family.name}-validators`, printer.text(validatorModule(model, family, compiled)));
    }
    add("wire-types", printer.text(await wireTypeModule(resolved)));
    add("model", printer.source(modelModule(model)));
    add("index", printer.source(releaseIndex(model)));
  }
  files.set("event-fields.ts", printer.source(eventFieldsModule(input.models)));
  files.set("all-releases.ts", printer.source(allReleases(input.models)));
  files.set("by-name.ts", printer.source(byName(input.models)));
  files.set("index.ts", printer.source(rootIndex(input.models)));
  return files;
}
