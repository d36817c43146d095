import { createContext, runInContext } from "node:vm";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { browserBundle } from "./bundle.js";

// A context with the language and what every browser has besides, and nothing of Node: no process, no Buffer, no require.

const WEB = {
  TextEncoder,
  TextDecoder,
  MessageChannel,
  crypto,
  AbortController,
  DOMException,
  URL,
};

async function runWithoutNode(program: string): Promise<unknown> {
  const { code } = await browserBundle(program, { splitting: false });
  assert.not.match(code, /["']node:/);
  const context = createContext({ ...WEB });
  return runInContext(code, context);
}

test("the core loads whole, hashes and names keys", async () => {
  const program = `
    import * as core from "mooncake-kv";
    const hashes = new core.BlockHasher({ blockSize: 4, algorithm: "sha256_cbor" }).hash([1, 2, 3, 4]);
    const keys = core.KeyTable.fromHashes("m@tp_rank:0", hashes);
    globalThis.result = { names: Object.keys(core).length, keys: [...keys], flat: keys.flat().bytes.length };
  `;
  const { code } = await browserBundle(program, { splitting: false });
  const context = createContext({ ...WEB });
  runInContext(code, context);
  const { names, keys, flat } = (context as { result: { names: number; keys: string[]; flat: number } })
    .result;
  assert.ok(names > 60, `${names} names`);
  assert.equal([...keys], ["m@tp_rank:0@58d0879dff3800f65f8c5fd449d73048c0f7699dd238a03b84b146b151d55111"]);
  assert.is(flat, keys[0]!.length);
});

test("the wire types load whole, check and convert", async () => {
  await runWithoutNode(`
    import * as wire from "mooncake-kv/wire";
    const { fromJson, toMessagePack, fromMessagePack } = wire.codecs.KeyMetadata;
    const json = { model_name: "m", tp_rank: 0, pcp_rank: 0, dcp_rank: 0, pp_rank: 0 };
    const again = fromMessagePack(toMessagePack(fromJson(json)));
    if (again.modelName !== "m") throw new Error("lost the name");
    let refused = "";
    try { fromJson({ ...json, tp_rank: -1 }); } catch (error) { refused = error.code; }
    if (refused !== "ERR_SCHEMA") throw new Error("took a rank of -1");
  `);
});

test("a bundle that needs Node does not pass for one", async () => {
  let failure: unknown;
  await browserBundle('import { openStore } from "mooncake-kv/store"; console.log(openStore);').catch(
    (error: unknown) => {
      failure = error;
    },
  );
  assert.match(String(failure), /Could not resolve "node:/);
});

test.run();
