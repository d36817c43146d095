import { register } from "node:module";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { tokenize } from "../../src/cli/lookup/tokenizer.js";
import { isMooncakeKvError } from "../../src/errors.js";
import { EventSubscriber, ZmqEventPublisher } from "../../src/events/index.js";
import { LookupKeyClient, LookupKeyServer } from "../../src/lookup/index.js";

// The optional packages as on a machine that has none of them: in this process nobody finds them.

const HOOK = `
export async function resolve(specifier, context, next) {
  if (!["zeromq", "@huggingface/tokenizers"].includes(specifier)) return next(specifier, context);
  throw Object.assign(new Error("Cannot find package " + specifier), { code: "ERR_MODULE_NOT_FOUND" });
}`;
register(`data:text/javascript,${encodeURIComponent(HOOK)}`);

const named = (error: unknown, name: string) => {
  assert.ok(isMooncakeKvError(error, "ERR_CONFIG"), String(error));
  assert.match((error as Error).message, `npm install ${name}`);
};
const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );
const lookup = () => ({ hitLength: 0, tailKeyBoundaries: [] });

test("servers, clients, publishers and subscribers name zeromq", async () => {
  named(await failure(LookupKeyServer.listen({ lookup }, { socketPath: "ipc:///tmp/never" })), "zeromq");
  named(await failure(ZmqEventPublisher.open()), "zeromq");
  named(
    await failure(new EventSubscriber({ endpoint: "tcp://localhost:1" })[Symbol.asyncIterator]().next()),
    "zeromq",
  );
  const client = new LookupKeyClient({ socketPath: "ipc:///tmp/never" });
  const { hitLength, failure: found } = await client.lookup("r", 16, []);
  assert.equal([hitLength, found?.reason], [0, "no-reply"]);
  named(found?.error, "zeromq");
  named(await failure(client.reset()), "zeromq");
  await client.close();
});

test("a text names the tokenizers", async () => {
  const tokenizer = new URL("../../package.json", import.meta.url).pathname;
  named(await failure(tokenize("x", { tokenizer })), "@huggingface/tokenizers");
});

test.run();
