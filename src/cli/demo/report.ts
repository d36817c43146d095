import type { DemoLookup, DemoResult } from "./run-demo.js";

const BAR_WIDTH = 60;

/** What the first part came to, for a person. */
export function reportLines(result: DemoResult): string[] {
  const { saved, loaded, first, second } = result;
  const hashing = result.nativeHashing ? "native" : "TypeScript";
  return [
    `${result.model}: ${result.tokens} tokens, ${result.blocks} full blocks, hashed in ${milliseconds(result.hashSeconds)} (${hashing})`,
    `first key  ${result.firstKey}`,
    `last key   ${result.lastKey}`,
    "",
    `engine A (TP 4) saved  ${transfer(saved)} into ${result.store}:`,
    `engine B (TP 2) loaded ${transfer(loaded)}; every byte is equal`,
    "",
    `same prompt            ${hit(first)}`,
    `  ${bar(first)}`,
    `same beginning         ${hit(second)}`,
    `  ${bar(second)}`,
  ];
}

/** Which part of a prompt was found: full cells are tokens in the store. */
export function bar(
  { tokens, hitTokens }: Pick<DemoLookup, "tokens" | "hitTokens">,
  width: number = BAR_WIDTH,
): string {
  // Never full while anything is missing, never empty while anything was found.
  const cells = Math.round((hitTokens / tokens) * width);
  const full = hitTokens === 0 ? 0 : Math.max(1, hitTokens < tokens ? Math.min(cells, width - 1) : width);
  return `[${"█".repeat(full)}${"░".repeat(width - full)}]`;
}

function hit({ tokens, blocks, hitTokens }: DemoLookup): string {
  const percent = ((hitTokens / tokens) * 100).toFixed(1);
  return `${hitTokens} of ${tokens} tokens hit (${percent} %, ${blocks} full blocks)`;
}

function transfer({ objects, bytes, seconds }: DemoResult["saved"]): string {
  const megabytes = (Number(bytes) / 1e6).toFixed(1);
  return `${objects} objects, ${megabytes} MB at ${(Number(bytes) / 1e9 / seconds).toFixed(2)} GB/s`;
}

function milliseconds(seconds: number): string {
  return `${(seconds * 1000).toFixed(1)} ms`;
}
