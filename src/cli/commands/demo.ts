import type { Command } from "commander";
import { loadNative, nativeAvailable, nativeBlockHashKernel } from "../../native/index.js";
import { openStore } from "../../store/index.js";
import type { CommandContext } from "../command.js";
import { conversationLines } from "../demo/conversation/report.js";
import { runConversation } from "../demo/conversation/run-conversation.js";
import { withOwnObjects } from "../demo/own-objects.js";
import { reportLines } from "../demo/report.js";
import { runDemo } from "../demo/run-demo.js";
import { promptTokens } from "../demo/tokenizer.js";
import { jsonText } from "../json.js";
import { BuildProgress } from "../native-build/build-progress.js";
import { buildNativeAddon } from "../native-build/native-build.js";
import { addJsonOption, type JsonOption } from "../options.js";
import { packageRoot } from "../package-root.js";

const HELP = `
Takes the text of the licence as a prompt, gpt-oss's tokenizer, and the KV geometry of gpt-oss-20b. An engine with
TP 4 saves the prompt's blocks; an engine with TP 2 looks them up, loads them and compares every byte; then a second
prompt with the same beginning is looked up.

Then two engines with the model's two cache groups serve a conversation in turn, through the scheduler and worker sides
of the connector. One request is preempted, and for one the store loses a block. All that they know of each other's
work is in the store. The KV bytes are made up, but anyone who knows the prompt can check them.

All keys have a prefix of their own, and their objects are removed in the end, also on Ctrl-C.

Builds the native addon first where it is missing. Exit status: 1 when a byte differs or the store fails.`;

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
  const { stdout } = context;
  const root = packageRoot();
  if (!nativeAvailable()) await build(root, context);
  const store = await openStore(uri);
  try {
    const tokens = await promptTokens(root);
    await withOwnObjects(store, async (cachePrefix) => {
      const work = { store, tokens, kernel: nativeBlockHashKernel(), cachePrefix };
      const result = await runDemo(work);
      if (!json) {
        await stdout.lines([...reportLines(result), ""]);
        await stdout.flush();
      }
      const conversation = await runConversation(work);
      if (json) await stdout.line(jsonText({ ...result, conversation }));
      else await stdout.lines(conversationLines(conversation));
    });
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
