import { readFileSync } from "node:fs";
import { join } from "node:path";

/** One HTTP exchange that was recorded with the real master. */
export interface RecordedExchange {
  readonly scenario: string;
  readonly method: string;
  /** The exact bytes sent, as UTF-8 text. */
  readonly path: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

interface Line {
  readonly id: string;
  readonly steps: readonly {
    readonly op: string;
    readonly method?: string;
    readonly path?: string;
    readonly samples?: readonly string[];
    readonly response?: { status: number; headers: Record<string, string>; body: string };
  }[];
}

/** Every exchange of `mooncake_admin.jsonl`, in order. */
export function recordedExchanges(): RecordedExchange[] {
  return recordedLines().flatMap(({ id, steps }) =>
    steps
      .filter((step) => step.op === "http")
      .map(({ method, path, response }) => ({ scenario: id, method: method!, path: path!, ...response! })),
  );
}

/** The samples of the recorded `/metrics`, all of them: its body is cut short. */
export function recordedSamples(): readonly string[] {
  return recordedLines()
    .flatMap(({ steps }) => steps)
    .find((step) => step.samples !== undefined)!.samples!;
}

function recordedLines(): Line[] {
  const text = readFileSync(join("test", "vectors", "mooncake_admin.jsonl"), "utf8");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);
}

/** What the real master reads in the parameter of `/batch_query_keys`: percent-decoded first, then split at commas. */
export function decodedKeys(path: string): string[] {
  const raw = /[?&]keys=([^&]*)/.exec(path)?.[1] ?? "";
  const decoded = raw
    .replaceAll("+", " ")
    .replace(/(?:%[0-9A-Fa-f]{2})+/g, (codes) =>
      Buffer.from(codes.replaceAll("%", ""), "hex").toString("utf8"),
    );
  return decoded.split(",");
}
