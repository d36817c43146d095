import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

// `npm run bench [-- words]`: every benchmark of this folder, or those whose names contain one of the words. One JSON
// line a figure.

const folder = dirname(fileURLToPath(import.meta.url));
const words = process.argv.slice(2);
const files = readdirSync(folder)
  .filter((file) => file.endsWith(".ts") && file !== "main.ts" && file !== "figure.ts")
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
  .sort();
for (const file of files) {
  const module = (await import(pathToFileURL(join(folder, file)).href)) as { run(): Promise<void> };
  await module.run();
}
