import { cpSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

// Copies the declarations into a folder whose package.json says CommonJS. Node requires the package's modules as they
// are; but TypeScript under `module: node16` refuses a CommonJS file whose `import` leads to declarations of ES modules.

const dist = fileURLToPath(new URL("../dist", import.meta.url));
const target = join(dist, "commonjs");
rmSync(target, { recursive: true, force: true });
for (const file of readdirSync(dist, { recursive: true, encoding: "utf8" }))
  if (file.endsWith(".d.ts")) cpSync(join(dist, file), join(target, file));
writeFileSync(join(target, "package.json"), '{ "type": "commonjs" }\n');
