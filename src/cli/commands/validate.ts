import type { Command } from "commander";
import { loadCodec } from "../../../generated/typescript/by-name.js";
import { DEFAULT_RELEASE, type Release } from "../../release.js";
import type { CommandContext } from "../command.js";
import type { Line } from "../input/lines.js";
import { type InputText, parseJson, readFileOrStdin, readInputLines } from "../input/read-input.js";
import { addJsonOption, type JsonOption, releaseOption } from "../options.js";
import { UsageError } from "../usage-error.js";
import { checkValue, type InputValue, type Invalid } from "../validate/check-value.js";
import { JsonReport, TextReport } from "../validate/report.js";

interface ValidateOptions extends JsonOption {
  readonly type: string;
  readonly release: Release;
  readonly each?: true | undefined;
  readonly lines?: true | undefined;
}

const HELP = `
The input is one JSON value. With --each it is a JSON array of values; a file named .jsonl, or any input with --lines,
has one value a line. JSON has vLLM's member names, 64-bit integers as decimal texts and bytes as lower-case hex.

Prints ok, or one line for each value that is wrong, with its path, the value there and the first rule that it breaks. A
line that is no JSON is a wrong value, too. An unknown --type lists the types of the release.

Exit status: 0 when every value is valid, 1 when one is not, 2 when the input can't be read or is no JSON.`;

/** `mooncake-kv validate` */
export function define(command: Command, context: CommandContext): void {
  command
    .argument("<file>", "JSON file; - is stdin")
    .requiredOption("--type <name>", "wire type, such as ReqMeta")
    .addOption(releaseOption().default(DEFAULT_RELEASE))
    .option("--each", "the input is an array; check each of its values")
    .option("--lines", "the input has one JSON value a line");
  addJsonOption(command)
    .addHelpText("after", HELP)
    .action((file: string, options: ValidateOptions) => run(file, options, context));
}

async function run(file: string, options: ValidateOptions, context: CommandContext): Promise<void> {
  const lines = options.lines === true || (file.endsWith(".jsonl") && !options.each);
  if (options.lines && options.each) throw new UsageError("--each and --lines exclude each other");
  const codec = await loadCodec(options.release, options.type);
  const values = lines
    ? valuesOfLines(readInputLines(context, { file, what: "input" }))
    : valuesOf(await readFileOrStdin(context, file), options.each === true);
  const report = options.json
    ? new JsonReport(codec)
    : new TextReport(context.stdout, lines || !!options.each);
  for await (const value of values) {
    const invalid = "problem" in value ? value : checkValue(codec, value);
    await report.add(invalid);
    if (invalid !== undefined) context.exitCode = 1;
  }
  await context.stdout.line(report.end());
}

async function* valuesOf(input: InputText, each: boolean): AsyncGenerator<InputValue> {
  const value = parseJson(input);
  if (!each) yield { index: 0, where: "", value };
  else if (!Array.isArray(value)) throw new UsageError(`${input.source}: --each needs a JSON array`);
  else for (const [index, item] of value.entries()) yield { index, where: `[${index}]`, value: item };
}

/** One value a line. A line that is none is told, and the others go on. */
async function* valuesOfLines({
  lines,
}: {
  readonly lines: AsyncIterable<Line>;
}): AsyncGenerator<InputValue | Invalid> {
  let index = 0;
  for await (const { number, text } of lines) {
    if (text?.trim() === "") continue;
    const at = { index: index++, line: number, where: `line ${number}` };
    try {
      if (text === undefined) yield { ...at, problem: "not UTF-8 text" };
      else yield { ...at, value: JSON.parse(text) as unknown };
    } catch (error) {
      yield { ...at, problem: `not JSON: ${(error as Error).message}` };
    }
  }
}
