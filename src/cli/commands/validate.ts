import type { Command } from "commander";
import { type AnyCodec, loadCodec } from "../../../generated/typescript/by-name.js";
import { isMooncakeKvError, type MooncakeKvError } from "../../errors.js";
import { DEFAULT_RELEASE, type Release } from "../../release.js";
import type { CommandContext } from "../command.js";
import { type InputText, parseJson, readFileOrStdin } from "../input/read-input.js";
import { jsonText } from "../json.js";
import { addJsonOption, type JsonOption, releaseOption } from "../options.js";
import { oneLine } from "../text.js";
import { UsageError } from "../usage-error.js";

interface ValidateOptions extends JsonOption {
  readonly type: string;
  readonly release: Release;
  readonly each?: true | undefined;
  readonly lines?: true | undefined;
}

/** A value that does not keep to its schema. */
interface Invalid {
  /** Which of several values. */
  readonly index: number;
  readonly error: MooncakeKvError;
}

const HELP = `
The input is one JSON value. With --each it is a JSON array of values; a file named .jsonl, or any input with --lines,
has one value a line. JSON has vLLM's member names, 64-bit integers as decimal texts and bytes as lower-case hex.

Prints ok, or one line for each value that is wrong, with its path, the value there and the rule. An unknown --type
lists the types of the release.

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
  const input = await readFileOrStdin(context, file);
  const values = lines ? valuesOfLines(input) : valuesOf(input, options.each === true);
  const invalid = values.flatMap((value, index) => check(codec, value, index));
  if (invalid.length > 0) context.exitCode = 1;
  if (options.json) await context.stdout.line(jsonText(report(codec, values.length, invalid)));
  else if (lines || options.each) await context.stdout.lines(manyLines(values.length, invalid, lines));
  else await context.stdout.line(invalid.length === 0 ? "ok" : oneLine(invalid[0]!.error.message));
}

function valuesOf(input: InputText, each: boolean): readonly unknown[] {
  const value = parseJson(input);
  if (!each) return [value];
  if (!Array.isArray(value)) throw new UsageError(`${input.source}: --each needs a JSON array`);
  return value;
}

function valuesOfLines({ text, source }: InputText): unknown[] {
  const values: unknown[] = [];
  for (const [index, line] of text.split("\n").entries())
    if (line.trim() !== "") values.push(parseJson({ text: line, source: `${source} line ${index + 1}` }));
  return values;
}

function check(codec: AnyCodec, value: unknown, index: number): Invalid[] {
  try {
    codec.fromJson(value);
    return [];
  } catch (error) {
    if (!isMooncakeKvError(error, "ERR_SCHEMA")) throw error;
    return [{ index, error }];
  }
}

function* manyLines(total: number, invalid: readonly Invalid[], lines: boolean): Iterable<string> {
  for (const { index, error } of invalid)
    yield `${lines ? `value ${index + 1}` : `[${index}]`}: ${oneLine(error.message)}`;
  yield invalid.length === 0 ? `ok: ${total} valid` : `${total - invalid.length} of ${total} valid`;
}

function report(codec: AnyCodec, total: number, invalid: readonly Invalid[]): Record<string, unknown> {
  return {
    type: codec.type,
    release: codec.release,
    total,
    valid: total - invalid.length,
    errors: invalid.map(({ index, error: { message, details } }) => ({
      index,
      path: details["path"] ?? "$",
      value: details["value"] ?? null,
      rule: details["rule"] ?? null,
      message,
    })),
  };
}
