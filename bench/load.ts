import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { report } from "./figure.js";

// What importing an entry of the built package costs an empty Node: milliseconds and resident memory. Each figure is the
// median of runs in turn, each in a process of its own, with the import of an empty module taken off.

const RUNS = 15;

const PROGRAM = `
  const memory = process.memoryUsage.rss();
  const start = performance.now();
  await import(process.argv[1]);
  console.log(JSON.stringify([performance.now() - start, (process.memoryUsage.rss() - memory) / 1e6]));
`;

function once(specifier: string): [number, number] {
  const output = execFileSync(process.execPath, ["--input-type=module", "-e", PROGRAM, specifier], {
    encoding: "utf8",
  });
  return JSON.parse(output) as [number, number];
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1]!;
}

/** Measures every entry. Needs the built package: `npm run build:ts`. */
export async function run(): Promise<void> {
  const { exports } = JSON.parse(readFileSync("package.json", "utf8")) as {
    readonly exports: Readonly<Record<string, unknown>>;
  };
  const entries = Object.entries(exports).filter(([, target]) => typeof target === "object");
  const specifiers = ["data:text/javascript,", ...entries.map(([name]) => `mooncake-kv${name.slice(1)}`)];
  const measured = new Map(specifiers.map((specifier) => [specifier, [[], []] as [number[], number[]]]));
  for (let turn = 0; turn < RUNS; turn++)
    for (const specifier of specifiers) {
      const [time, memory] = once(specifier);
      measured.get(specifier)![0].push(time);
      measured.get(specifier)![1].push(memory);
    }
  const [emptyTime, emptyMemory] = measured.get(specifiers[0]!)!.map(median) as [number, number];
  for (const specifier of specifiers.slice(1)) {
    const [time, memory] = measured.get(specifier)!.map(median) as [number, number];
    report(`load ${specifier}`, time - emptyTime, "ms");
    report(`load ${specifier}, memory`, memory - emptyMemory, "MB");
  }
}
