import type { Command } from "commander";
import { loadNative, nativeAvailable, nativeBlockHashKernel } from "../../native/index.js";
import { openStore } from "../../store/index.js";
import type { CommandContext } from "../command.js";
import { conversationLines } from "../demo/conversation/report.js";
import { runConversation } from "../demo/conversation/run-conversation.js";
import { reportLines } from "../demo/report.js";
import { runDemo } from "../demo/run-demo.js";
import { promptTokens } from "../demo/tokenizer.js";
import { jsonText } from "../json.js";
import { buildNativeAddon } from "../native-build.js";
import { addJsonOption, type JsonOption } from "../options.js";
import { packageRoot } from "../package-root.js";
import { checkStoreOption } from "../store-option.js";

const HELP = `
Takes the text of the licence as a prompt, gpt-oss's tokenizer, and the KV geometry of gpt-oss-20b. An engine with
TP 4 saves the prompt's blocks; an engine with TP 2 looks them up, loads them and compares every byte; then a second
prompt with the same beginning is looked up.

Then two engines with the model's two cache groups serve a conversation in turn, through the scheduler and worker sides
of the connector. One request is preempted, and for one the store loses a block. All that they know of each other's
work is in the store. The KV bytes are made up, but anyone who knows the prompt can check them.

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

async function run({ store: uri, json }: DemoOptions, { stdout, stderr }: CommandContext): Promise<void> {
  await checkStoreOption(uri);
  const root = packageRoot();
  if (!nativeAvailable()) {
    await stderr.line("mooncake-kv: the native addon is not built yet; building it once");
    await stderr.flush();
    await buildNativeAddon(root, { quiet: true });
    loadNative();
  }
  const store = await openStore(uri);
  try {
    const work = { store, tokens: await promptTokens(root), kernel: nativeBlockHashKernel() };
    const result = await runDemo(work);
    if (!json) {
      await stdout.lines([...reportLines(result), ""]);
      await stdout.flush();
    }
    const conversation = await runConversation(work);
    if (json) await stdout.line(jsonText({ ...result, conversation }));
    else await stdout.lines(conversationLines(conversation));
  } finally {
    await store.close();
  }
}
