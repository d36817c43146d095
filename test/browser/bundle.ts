import { gzipSync } from "node:zlib";
import { build } from "esbuild";

/** A bundle for a browser, as a user of esbuild makes one of the built package. */
export interface BrowserBundle {
  readonly code: string;
  /** Bytes of what a page loads at once, minified. */
  readonly bytes: number;
  /** The same after gzip. */
  readonly gzipBytes: number;
  /** Modules of which something is in it, relative to the repository. */
  readonly modules: readonly string[];
}

/** How a bundle is made. */
export interface BundleOptions {
  /** Put what is imported dynamically into files of its own, as applications do; the default. */
  readonly splitting?: boolean;
  /** Modules of Node that the program names and never uses. */
  readonly stubbed?: readonly string[];
  /** Files that the program imports as text end so. */
  readonly textFiles?: string;
}

/** Bundles a program that imports the package by its name. Fails where anything of Node is needed. */
export async function browserBundle(
  program: string,
  { splitting = true, stubbed = [], textFiles = ".txt" }: BundleOptions = {},
): Promise<BrowserBundle> {
  const { outputFiles, metafile } = await build({
    stdin: { contents: program, resolveDir: process.cwd() },
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    splitting,
    outdir: "out",
    write: false,
    metafile: true,
    loader: { [textFiles]: "text" },
    logLevel: "silent",
    // The checkout's own paths, which an installed package is not subject to.
    tsconfigRaw: {},
    plugins: [
      {
        name: "stub",
        setup(plugin) {
          plugin.onResolve({ filter: /^node:/ }, ({ path }) =>
            stubbed.includes(path) ? { path, namespace: "stub" } : undefined,
          );
          plugin.onLoad({ filter: /.*/, namespace: "stub" }, () => ({
            contents: "module.exports = {};",
            loader: "js",
          }));
        },
      },
    ],
  });
  const main = outputFiles.find(({ path }) => path.endsWith("stdin.js"))!;
  const { inputs } = Object.values(metafile.outputs).find(({ entryPoint }) => entryPoint === "<stdin>")!;
  return {
    code: main.text,
    bytes: main.contents.length,
    gzipBytes: gzipSync(main.contents).length,
    modules: Object.entries(inputs).flatMap(([module, { bytesInOutput }]) =>
      bytesInOutput > 0 ? [module] : [],
    ),
  };
}
