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

/** One of the values of an input. */
interface Given {
  /** Which of several; with `--lines` the number of its line, counted from 1. */
  readonly index: number;
  readonly value: unknown;
  /** Why it could not be read. */
  readonly unreadable?: UsageError | undefined;
}

/** A value that does not keep to its schema, or a line that is no JSON. */
interface Invalid {
  readonly index: number;
  readonly error: MooncakeKvError | UsageError;
}

const HELP = `
The input is one JSON value. With --each it is a JSON array of values; a file named .jsonl, or any input with --lines,
has one value a line; a line that is no JSON is wrong, and the others are checked. JSON has vLLM's member names, 64-bit integers as decimal texts and bytes as lower-case hex.

Prints ok, or one line for each value that is wrong, with its path, the value there and the rule. An unknown --type
lists the types of the release.

Exit status: 0 when every value is valid, 1 when one is not or a line is no JSON, 2 when the input can't be read.`;

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
  if (options.lines && options.each) throw new UsageError("--each and --lines exclude each other");
  const codec = await loadCodec(options.release, options.type);
  const lines = options.lines === true || (file.endsWith(".jsonl") && !options.each);
  const input = await readFileOrStdin(context, file);
  const values = lines ? valuesOfLines(input) : valuesOf(input, options.each === true);
  const invalid = values.flatMap((given) => check(codec, given));
  if (invalid.length > 0) context.exitCode = 1;
  if (options.json) await context.stdout.line(jsonText(report(codec, values.length, invalid)));
  else if (lines || options.each) await context.stdout.lines(manyLines(values.length, invalid, lines));
  else await context.stdout.line(invalid.length === 0 ? "ok" : oneLine(invalid[0]!.error.message));
}

function valuesOf(input: InputText, each: boolean): readonly Given[] {
  const value = parseJson(input);
  if (!each) return [{ index: 0, value }];
  if (!Array.isArray(value)) throw new UsageError(`${input.source}: --each needs a JSON array`);
  return value.map((item: unknown, index) => ({ index, value: item }));
}

function valuesOfLines({ text, source }: InputText): Given[] {
  const values: Given[] = [];
  for (const [at, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const index = at + 1;
    try {
      values.push({ index, value: parseJson({ text: line, source: `${source} line ${index}` }) });
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      values.push({ index, value: undefined, unreadable: error });
    }
  }
  return values;
}

function check(codec: AnyCodec, { index, value, unreadable }: Given): Invalid[] {
  if (unreadable) return [{ index, error: unreadable }];
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
    yield `${lines ? `line ${index}` : `[${index}]`}: ${oneLine(error.message)}`;
  yield invalid.length === 0 ? `ok: ${total} valid` : `${total - invalid.length} of ${total} valid`;
}

function report(codec: AnyCodec, total: number, invalid: readonly Invalid[]): Record<string, unknown> {
  return {
    type: codec.type,
    release: codec.release,
    total,
    valid: total - invalid.length,
    errors: invalid.map(({ index, error: { message, details } }) => ({
      // Of lines their numbers, of array members their positions.
      index,
      path: details["path"] ?? "$",
      value: details["value"] ?? null,
      rule: details["rule"] ?? null,
      message,
    })),
  };
}
