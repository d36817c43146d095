import type { Command } from "commander";
import { loadNative, nativeAvailable, nativeBlockHashKernel } from "../../native/index.js";
import { openStore } from "../../store/index.js";
import type { CommandContext } from "../command.js";
import { conversationLines } from "../demo/conversation/report.js";
import { reportLines } from "../demo/report.js";
import { promptTokens } from "../demo/tokenizer.js";
import { runWholeDemo } from "../demo/whole-demo.js";
import { jsonText } from "../json.js";
import { BuildProgress } from "../native-build/build-progress.js";
import { buildNativeAddon } from "../native-build/native-build.js";
import { addJsonOption, type JsonOption } from "../options.js";
import { packageRoot } from "../package-root.js";
import { Progress } from "../progress.js";
import { StopSignal } from "../stop-signal.js";
import { checkStoreOption } from "../store-option.js";
import { oneLine } from "../text.js";

const HELP = `
Takes the text of the licence as a prompt, gpt-oss's tokenizer, and the KV geometry of gpt-oss-20b. An engine with
TP 4 saves the prompt's blocks; an engine with TP 2 looks them up, loads them and compares every byte; then a second
prompt with the same beginning is looked up.

Then two engines with the model's two cache groups serve a conversation in turn, through the scheduler and worker sides
of the connector. One request is preempted, and for one the store loses a block. All that they know of each other's
work is in the store. The KV bytes are made up, but anyone who knows the prompt can check them.

All keys begin with a prefix of this run, mooncake-kv-demo-..., so that no engine can take its bytes for real ones, and its
objects are removed in the end, also after a failure or a signal.

Builds the native addon first where it is missing. Exit status: 0 when all went well, 1 when a byte differs or the store
fails, 128 and the number of a signal that ended it.`;

interface DemoOptions extends JsonOption {
  readonly store: string;
}

/** `mooncake-kv demo`: the whole way of a prompt, in seconds. */
export function define(command: Command, context: CommandContext): void {
  command.option("--store <uri>", "store to use", "embedded:?capacity=512MiB");
  addJsonOption(command)
    .addHelpText("after", HELP)
    .action((options: DemoOptions) => run(options, context));
}

async function run({ store: uri, json }: DemoOptions, context: CommandContext): Promise<void> {
  const { stdout, stderr } = context;
  await checkStoreOption(uri);
  const root = packageRoot();
  if (!nativeAvailable()) await build(root, context);
  using stop = new StopSignal(context.io);
  const progress = new Progress(context, json);
  const store = await openStore(uri);
  try {
    const { first, conversation } = await runWholeDemo({
      ...{ store, tokens: await promptTokens(root), kernel: nativeBlockHashKernel() },
      step: async (what) => {
        stop.throwIfStopped();
        await progress.step(`demo: ${what}`);
      },
      onFirstPart: async (result) => {
        await progress.end();
        if (json) return;
        await stdout.lines([...reportLines(result), ""]);
        await stdout.flush();
      },
      onLeftBehind: async ({ cachePrefix, reason }) => {
        await progress.end();
        await stderr.line(
          `mooncake-kv: warning: the store did not remove the objects of the demo (${oneLine(reason)}); their keys begin with ${cachePrefix}@`,
        );
      },
    });
    await progress.end();
    if (json) await stdout.line(jsonText({ ...first, conversation }));
    else await stdout.lines(conversationLines(conversation));
  } catch (error) {
    await progress.end();
    if (stop.name === undefined) throw error;
    await stderr.line(`mooncake-kv: ended by ${stop.name}`);
    context.exitCode = stop.exitCode;
  } finally {
    await store.close();
  }
}

async function build(root: string, { io, env, stderr }: CommandContext): Promise<void> {
  await stderr.line(
    "mooncake-kv: the native addon is not built yet; building it once, which takes a minute or two",
  );
  await stderr.flush();
  const progress = new BuildProgress(io.stderr);
  try {
    await buildNativeAddon(root, { quiet: true, onOutput: progress.take, environment: { ...env } });
  } finally {
    progress.end();
  }
  loadNative();
}
