import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { transform } from "esbuild";
import { rollup } from "rollup";

// Puts what tsc wrote for Node into few files: Node takes about half a millisecond a file, whatever is in it. Bundlers
// get the files of tsc, from which they take just what is used.

const root = fileURLToPath(new URL("..", import.meta.url));
const { exports, bin } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  readonly exports: Readonly<Record<string, string | { readonly node?: string; readonly default: string }>>;
  readonly bin: Readonly<Record<string, string>>;
};

/** Folder of the bundles. */
const OUTPUT = "dist/node";

/** What Node loads of each entry, by its name in the folder, and what tsc made of it. */
const input: Record<string, string> = { cli: "dist/src/cli/main.js" };
for (const entry of Object.values(exports))
  if (typeof entry !== "string" && entry.node !== undefined)
    input[entry.node.slice(`./${OUTPUT}/`.length, -".js".length)] = join(root, entry.default);
if (bin["mooncake-kv"] !== `${OUTPUT}/cli.js`) throw new Error("package.json names another command");

/** Rooms that everything stands on: one file each, so that few are loaded. */
const CHUNKS: readonly [name: string, files: RegExp][] = [
  ["base", /\/dist\/src\/(?:errors|release|(?:checks|platform)\b.*)\.js$/],
  ["core", /\/dist\/src\/(?:hash|key|chunk|layout|request|coordinator|index|python-text)\b/],
];

const bundle = await rollup({
  input,
  external: (id) => !id.startsWith(".") && !id.startsWith("/") && id !== "#platform",
  treeshake: { moduleSideEffects: (id) => id.endsWith("/cli/main.js") },
  plugins: [
    // Node's side of the package's import map, without a look at the map.
    {
      name: "platform",
      resolveId: (id) => (id === "#platform" ? join(root, "dist/src/platform/node.js") : null),
    },
    {
      name: "without comments",
      renderChunk: async (code) => (await transform(code, { target: "es2022", legalComments: "none" })).code,
    },
  ],
  onwarn: (warning, warn) => {
    // The helpers that tsc puts in for `using` look for a `this` that modules don't have, and then do without.
    if (warning.code !== "THIS_IS_UNDEFINED") warn(warning);
  },
});
await bundle.write({
  dir: join(root, OUTPUT),
  format: "esm",
  chunkFileNames: "chunks/[name].js",
  hoistTransitiveImports: false,
  manualChunks: (id) => CHUNKS.find(([, files]) => files.test(id))?.[0],
});
await bundle.close();
