import { type Command, Option } from "commander";
import { DEFAULT_HASH_ALGORITHM } from "../../hash/index.js";
import { modelNameWarnings } from "../../key/index.js";
import { LOOKUP_FRAME_FORMS, type LookupFrameForm, LookupKeyClient } from "../../lookup/index.js";
import { DEFAULT_RELEASE } from "../../release.js";
import type { CommandContext } from "../command.js";
import { jsonText } from "../json.js";
import { type Answer, answerLines, askEngine, nothingToAsk } from "../lookup/answer.js";
import { askStoreAt } from "../lookup/ask-store.js";
import { type EngineOptions, lookupEngine } from "../lookup/engine-groups.js";
import { engineShape, GROUP_KINDS, GROUP_USAGE } from "../lookup/engine-shape.js";
import { type Prompt, type PromptOptions, readPrompt } from "../lookup/prompt.js";
import {
  addFileOption,
  addJsonOption,
  algorithmOption,
  hexOption,
  type JsonOption,
  ranksOption,
  releaseOption,
  wholeOption,
} from "../options.js";
import { checkStoreOption } from "../store-option.js";
import { oneLine } from "../text.js";
import { UsageError } from "../usage-error.js";

interface LookupOptions extends JsonOption, PromptOptions, EngineOptions {
  readonly store?: string | undefined;
  readonly socket?: string | undefined;
  readonly form: LookupFrameForm;
  readonly timeout: number;
}

const HELP = `
The prompt: token ids (as mooncake-kv hash takes them), a text with --tokenizer, or block hashes with --hashes. What
mooncake-kv hash and chunks print says the block size, too; bare hashes need --block-size.

Groups are ${GROUP_KINDS}; EXTRA tokens are kept below the window for multi-token prediction. Blocks are hashed as vLLM
resolves it: with one group a hash is of --block-size times --dcp-size tokens; with several of --hash-block-size, else of the
greatest common divisor of their block sizes. With speculative decoding the engine computes the last matched block again: --eagle, or +eagle behind the groups that
hold layers of the draft model.

Whom to ask: a store (--store), under the keys of the engine that --model and the options after it describe; or an
engine (--socket), which knows its keys itself. A question to a store gives each key that exists a lease, so that it
is not evicted for some seconds. A store is asked in growing windows: a miss costs one small question. The command gives
no memory to a cluster (role=requester), unless the URI says role or globalSegmentSize itself.

  mooncake-kv lookup --store mooncake:./mooncake.json --model Qwen/Qwen3-8B --tokenizer ./tokenizer.json -f prompt.txt
  mooncake-kv lookup --socket /tmp/lookup_rpc_port_0_host_gpu01_dp_rank0 1 2 3 4 --block-size 4

Prints the tokens of the longest stored prefix, or "unknown: ..." where that can't be said: an outage is no miss. Ends
with 1 when the store or the engine failed, or said nothing within --timeout.`;

/** `mooncake-kv lookup` */
export function define(command: Command, context: CommandContext): void {
  const size = (flags: string, description: string) => wholeOption(flags, description, 1);
  command
    .argument("[prompt...]", "token ids, text or block hashes")
    .addOption(new Option("--store <uri>", "ask this store").conflicts("socket"))
    .option("--socket <address>", "ask the engine at this socket: a path, ipc://... or tcp://...")
    .option("--hashes", "the prompt is block hashes")
    .option("--tokenizer <path>", "the prompt is text for this tokenizer.json")
    .option("--no-special-tokens", "add no special tokens to a text")
    .addOption(releaseOption().default(DEFAULT_RELEASE))
    .addOption(algorithmOption().default(DEFAULT_HASH_ALGORITHM))
    .addOption(
      size("--block-size <tokens>", "--block-size of the engine (default: what fits the hashes, or 16)"),
    )
    .addOption(size("--hash-block-size <tokens>", "--prefix-match-unit of the engine, where it has one"))
    .option("--seed <text>", "PYTHONHASHSEED of the engine (default: that of the environment)")
    .addOption(hexOption("--none-hash <hex>", "root of the chain, where it is known").conflicts("seed"))
    .addOption(
      wholeOption("--lookahead <tokens>", "tokens after a block that its hash covers too").default(0),
    )
    .option("--lora-name <name>", "name of the LoRA adapter")
    .option("--lora-path <path>", "path of the LoRA adapter")
    .option("--cache-salt <text>", "cache salt of the request")
    .option("--model <path>", "model path or name, as given to the engine")
    .option("--model-name <name>", "the model segment of the keys itself")
    .option("--cache-prefix <text>", "cache_prefix of the deployment", "")
    .option("--store-namespace <text>", "namespace of a payload format in the keys")
    .option(`--group <spec>`, `a KV cache group, in order: ${GROUP_USAGE} (default: full)`, collect)
    .option("--eagle", "speculative decoding is on, in all groups that say nothing else")
    .addOption(ranksOption("--tp-size <n>", "tensor-parallel size").default(1))
    .addOption(ranksOption("--pp-size <n>", "pipeline-parallel size").default(1))
    .addOption(ranksOption("--pcp-size <n>", "prefill-context-parallel size").default(1))
    .addOption(ranksOption("--dcp-size <n>", "decode-context-parallel size").default(1))
    .addOption(size("--num-kv-heads <n>", "KV heads of the whole model (default: no two ranks share one)"))
    .addOption(ranksOption("--store-tp-size <n>", "TP size that shared objects are cut for"))
    .addOption(
      new Option("--kv-cache-layout <name>", "order in memory of shared objects")
        .choices(["LBHNC", "LBNHC"])
        .default("LBNHC"),
    )
    .addOption(
      new Option("--form <name>", "form of the question to an engine")
        .choices(LOOKUP_FRAME_FORMS)
        .default("current"),
    )
    .addOption(size("--timeout <ms>", "how long the store or the engine may take").default(5000));
  addJsonOption(addFileOption(command, "the prompt"))
    .addHelpText("after", HELP)
    .action((args: readonly string[], options: LookupOptions) => run(args, options, context));
}

async function run(args: readonly string[], options: LookupOptions, context: CommandContext): Promise<void> {
  if ((options.store === undefined) === (options.socket === undefined))
    throw new UsageError("give either --store, the URI of a store, or --socket, the address of an engine");
  const ask = await question(options);
  let answer: Answer;
  let prompt: Prompt;
  let milliseconds: number;
  try {
    prompt = await readPrompt(args, options, context, ask.hashBlockSize);
    const started = performance.now();
    answer = nothingToAsk(prompt) ?? (await ask.ask(prompt));
    milliseconds = performance.now() - started;
  } finally {
    await ask.close();
  }
  if (answer.failed) context.exitCode = 1;
  for (const warning of options.model === undefined ? [] : modelNameWarnings(options.model))
    await context.stderr.line(`mooncake-kv: warning: ${oneLine(warning)}`);
  if (options.json) {
    await context.stdout.line(
      jsonText({
        hit_tokens: answer.hitTokens,
        unknown: answer.unknown ?? null,
        num_tokens: prompt.numTokens ?? null,
        block_size: prompt.blockSize,
        num_hashes: prompt.blockHashes.length,
        tail_key_boundaries: answer.tailKeyBoundaries,
        keys_asked: answer.keysAsked,
        questions: answer.questions,
        limited_by: answer.limitedBy,
        reason: answer.reason ?? null,
        milliseconds: Number(milliseconds.toFixed(3)),
      }),
    );
    return;
  }
  await context.stdout.lines(answerLines(answer, prompt).map(oneLine));
}

/** A question to a store, or to an engine. */
interface Question {
  /** Tokens of one hash of the engine; `said`: what hashes that came in are of, which must fit. */
  readonly hashBlockSize: (said?: number) => number;
  readonly ask: (prompt: Prompt) => Promise<Answer>;
  readonly close: () => Promise<void>;
}

/** The question that the options describe. What is written wrong in them is told before anything is read or asked. */
async function question(options: LookupOptions): Promise<Question> {
  if (options.store === undefined) return questionToEngine(options);
  const { store: uri } = options;
  let engine = lookupEngine(options);
  await checkStoreOption(uri);
  return {
    hashBlockSize: (said) => {
      engine = lookupEngine(options, said);
      return engine.hashBlockSize;
    },
    ask: (prompt) => askStoreAt(uri, engine, prompt, { timeoutMs: timeout(options) }),
    close: async () => {},
  };
}

/** A timer of Node takes no longer times. */
function timeout(options: LookupOptions): number {
  return Math.min(options.timeout, 2 ** 31 - 1_000);
}

function questionToEngine(options: LookupOptions): Question {
  const address = options.socket!;
  engineShape(options);
  const client = new LookupKeyClient({
    socketPath: /^[a-z]+:\/\//.test(address) ? address : `ipc://${address}`,
    release: options.release,
    form: options.form,
    timeoutMs: timeout(options),
  });
  return {
    hashBlockSize: (said) => engineShape(options, said).hashBlockSize,
    ask: (prompt) => askEngine(client, prompt),
    close: () => client.close(),
  };
}

function collect(value: string, earlier: readonly string[] = []): string[] {
  return [...earlier, value];
}
