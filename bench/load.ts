import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { report } from "./figure.js";

// What importing an entry of the built package costs an empty Node: milliseconds and resident memory. Each figure is the
// median of runs in turn, each in a process of its own beside an installed copy, with the import of an empty module taken
// off.

const RUNS = 15;

const PROGRAM = `
  const memory = process.memoryUsage.rss();
  const start = performance.now();
  await import(process.argv[1]);
  console.log(JSON.stringify([performance.now() - start, (process.memoryUsage.rss() - memory) / 1e6]));
`;

function once(specifier: string, cwd: string): [number, number] {
  const output = execFileSync(process.execPath, ["--input-type=module", "-e", PROGRAM, specifier], {
    encoding: "utf8",
    cwd,
  });
  return JSON.parse(output) as [number, number];
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1]!;
}

/** Measures every entry. Needs the built package: `npm run build:ts`. */
export async function run(): Promise<void> {
  const { exports, dependencies, peerDependencies } = JSON.parse(readFileSync("package.json", "utf8")) as {
    readonly exports: Readonly<Record<string, unknown>>;
    readonly dependencies: Readonly<Record<string, string>>;
    readonly peerDependencies: Readonly<Record<string, string>>;
  };
  const folder = mkdtempSync(join(tmpdir(), "mooncake-kv-load-"));
  const modules = join(folder, "node_modules");
  for (const path of ["package.json", "dist"])
    cpSync(path, join(modules, "mooncake-kv", path), { recursive: true });
  for (const name of [...Object.keys(dependencies), ...Object.keys(peerDependencies), "pure-rand"])
    cpSync(join("node_modules", name), join(modules, name), { recursive: true });
  const entries = Object.entries(exports).filter(([, target]) => typeof target === "object");
  const specifiers = ["data:text/javascript,", ...entries.map(([name]) => `mooncake-kv${name.slice(1)}`)];
  const measured = new Map(specifiers.map((specifier) => [specifier, [[], []] as [number[], number[]]]));
  for (let turn = 0; turn < RUNS; turn++)
    for (const specifier of specifiers) {
      const [time, memory] = once(specifier, folder);
      measured.get(specifier)![0].push(time);
      measured.get(specifier)![1].push(memory);
    }
  rmSync(folder, { recursive: true, force: true });
  const [emptyTime, emptyMemory] = measured.get(specifiers[0]!)!.map(median) as [number, number];
  for (const specifier of specifiers.slice(1)) {
    const [time, memory] = measured.get(specifier)!.map(median) as [number, number];
    report(`load ${specifier}`, time - emptyTime, "ms");
    report(`load ${specifier}, memory`, memory - emptyMemory, "MB");
  }
}
