import { codecs } from "mooncake-kv/wire";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { browserBundle } from "./bundle.js";

// What a page pays for what it uses.

const KB = 1_000;

test("parsing keys takes 3 kB", async () => {
  const { bytes, modules } = await browserBundle(
    'import { parseKey } from "mooncake-kv"; console.log(parseKey("a@b"));',
  );
  assert.ok(bytes <= 3 * KB, `${bytes} bytes of ${modules.join(", ")}`);
});

test("hashing with sha256 takes 25 kB, without xxhash and without a codec", async () => {
  const { bytes, modules } = await browserBundle(
    'import { BlockHasher } from "mooncake-kv"; console.log(new BlockHasher({ blockSize: 16 }).hash([1]));',
  );
  assert.ok(bytes <= 25 * KB, `${bytes} bytes of ${modules.join(", ")}`);
  assert.equal(
    modules.filter((module) => /hash-wasm|msgpack|generated/.test(module)),
    [],
  );
});

/** What an engine tells the scheduler: eight types at once. */
const UNION_OF_EIGHT = "SchedulerEvent";

const bundles = Object.keys(codecs).map(async (type) => {
  const codec = `${type.replace(/^[A-Z]+(?=[A-Z][a-z]|$)|^[A-Z]/, (head) => head.toLowerCase())}Codec`;
  const program = `import { ${codec} } from "mooncake-kv/wire"; console.log(${codec}.fromJson({}));`;
  return { type, ...(await browserBundle(program)) };
});

test("one codec takes 60 kB, and 20 kB after gzip", async () => {
  const large = (await Promise.all(bundles))
    .filter(({ type, bytes, gzipBytes }) => {
      const limit = type === UNION_OF_EIGHT ? 95 * KB : 60 * KB;
      return bytes > limit || gzipBytes > 20 * KB;
    })
    .map(({ type, bytes, gzipBytes }) => `${type}: ${bytes} bytes, ${gzipBytes} after gzip`);
  assert.equal(large, []);
});

test("a codec brings the validators of its family and those that it refers to, of one release", async () => {
  const all = await Promise.all(bundles);
  assert.ok(all.length > 40);
  const { modules } = all.find(({ type }) => type === "KeyMetadata")!;
  assert.equal(modules.filter((module) => module.startsWith("dist/generated/")).sort(), [
    "dist/generated/typescript/vllm-0.33/key-codecs.js",
    "dist/generated/typescript/vllm-0.33/key-validators.js",
  ]);
});

test.run();
