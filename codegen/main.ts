import { check, write } from "./generate.js";
import { SchemaProblem } from "./schema.js";

/** `npm run generate`: writes `generated/`. With `--check` it only compares, and exits 1 on a difference. */
async function main(args: readonly string[]): Promise<number> {
  const checking = args[0] === "--check";
  if (args.length > (checking ? 1 : 0)) {
    console.error(`generate: unknown argument ${args.at(-1)}; the only one is --check`);
    return 2;
  }
  const differences = await (checking ? check() : write());
  for (const { path, kind } of differences)
    console.log(
      checking
        ? `generated/${path}: ${kind}`
        : `generated/${path}: ${kind === "extra" ? "removed" : "written"}`,
    );
  if (!checking)
    console.log(
      differences.length === 0 ? "generated/ is up to date" : `${differences.length} files changed`,
    );
  else if (differences.length > 0) console.log("run `npm run generate` to make them equal");
  return checking && differences.length > 0 ? 1 : 0;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof SchemaProblem)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
