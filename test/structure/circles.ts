import { dirname, join } from "node:path";
import ts from "typescript";

/** Groups of files that import each other in a circle, by whatever kind of import; each group sorted. */
export function importCircles(sources: ReadonlyMap<string, string>): string[][] {
  const graph = new Map([...sources].map(([file, text]) => [file, importsOf(file, text, sources)]));
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const circles: string[][] = [];
  // Tarjan's strongly connected components.
  const visit = (file: string): void => {
    order.set(file, order.size);
    lowest.set(file, order.get(file)!);
    open.push(file);
    for (const next of graph.get(file)!) {
      if (!order.has(next)) visit(next);
      else if (!open.includes(next)) continue;
      lowest.set(file, Math.min(lowest.get(file)!, lowest.get(next)!));
    }
    if (lowest.get(file) !== order.get(file)) return;
    const circle = open.splice(open.indexOf(file));
    if (circle.length > 1 || graph.get(file)!.includes(file)) circles.push(circle.sort());
  };
  for (const file of sources.keys()) if (!order.has(file)) visit(file);
  return circles;
}

/** The files among `sources` that a file imports, statically, as types or dynamically. */
export function importsOf(file: string, text: string, sources: ReadonlyMap<string, string>): string[] {
  return ts
    .preProcessFile(text, true, true)
    .importedFiles.filter(({ fileName }) => fileName.startsWith("."))
    .map(({ fileName }) => join(dirname(file), fileName).replace(/\.js$/, ".ts"))
    .filter((target) => sources.has(target));
}
