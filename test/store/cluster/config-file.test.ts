import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../../src/errors.js";
import { readConfigFile } from "../../../src/store/cluster/config-file.js";
import { parseJsonText } from "../../../src/store/cluster/json-text.js";
import { loadMooncakeConfig } from "../../../src/store/cluster/mooncake-config.js";
import { openStore } from "../../../src/store/index.js";
import { check } from "../../helpers/property.js";
import { rejects } from "../helpers.js";

const test = suite("Mooncake's configuration file");
let folder = "";
test.before(() => {
  folder = mkdtempSync(join(tmpdir(), "mooncake-kv-config-"));
});
test.after(() => rmSync(folder, { recursive: true }));

function file(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** What an error shows, however it is printed. */
async function shown(call: () => Promise<unknown>): Promise<string> {
  try {
    await call();
  } catch (error) {
    assert.ok(isMooncakeKvError(error, "ERR_CONFIG"), String(error));
    return `${error.message}\n${inspect(error, { depth: 9 })}`;
  }
  throw new Error("nothing was thrown");
}

test("what is no regular file is refused, and nothing is read from it", async () => {
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  for (const path of ["/dev/zero", "/dev/stdin", pipe, folder]) {
    const started = performance.now();
    await rejects(() => readConfigFile(path), "ERR_CONFIG", /can't be read: it is no regular file/);
    await rejects(() => loadMooncakeConfig(path), "ERR_CONFIG", /no regular file/);
    await rejects(() => openStore(`mooncake:${path}`), "ERR_CONFIG", /no regular file/);
    await rejects(() => openStore(`mooncake-native:x?config=${path}`), "ERR_CONFIG", /no regular file/);
    assert.ok(performance.now() - started < 1_000, path);
  }
  await rejects(() => readConfigFile("a\0b"), "ERR_CONFIG", /can't be read/);
});

test("a file may have 1 MiB", async () => {
  const filled = (bytes: number) => `{"a": "${"x".repeat(bytes - 9)}"}`;
  const { a } = await readConfigFile(file("full.json", filled(1 << 20)));
  assert.is((a as string).length, (1 << 20) - 9);
  await rejects(
    () => readConfigFile(file("more.json", filled((1 << 20) + 1))),
    "ERR_CONFIG",
    /more than 1048576 bytes/,
  );
});

test("an error quotes nothing of the file: it may hold a password", async () => {
  const cases = {
    'hunter2 = "x"': /line 1, column 1/,
    '{"master_server_address": hunter2}': /line 1, column 27/,
    '{"a": 1,\n  "password": "hunter2}': /line 2, column 15/,
    '"hunter2"': /is text; it is a JSON object/,
    '["hunter2"]': /is a list/,
  };
  for (const [content, message] of Object.entries(cases)) {
    const path = file("secret.json", content);
    for (const call of [
      () => loadMooncakeConfig(path),
      () => openStore(`mooncake:${path}`),
      () => openStore(`mooncake-native:x?config=${path}`),
    ]) {
      const text = await shown(call);
      assert.match(text, message);
      assert.match(text, "secret.json");
      assert.not.match(text, "hunter2");
    }
  }
});

test("the password of an address is in no error", async () => {
  for (const address of ["redis://u:hunter2@h:1", "http://u:hunter2@h:1/metadata?x", "u:hunter2@h:2379"]) {
    const path = file(
      "addresses.json",
      JSON.stringify({ master_server_address: "m", metadata_server: address }),
    );
    const text = await shown(() => openStore(`mooncake:${path}`));
    assert.match(text, "metadataServer");
    assert.not.match(text, "hunter2");
  }
});

test("what JSON.parse refuses is refused, at a place within the text, and nothing else", () => {
  const broken = fc
    .tuple(
      fc.json(),
      fc.nat(),
      fc.nat(2),
      fc.string({ unit: fc.constantFrom(...'{}[],:"\\ \n\t0-.1eu\u0001ttrue') }),
    )
    .map(([text, at, removed, added]) => {
      const place = at % (text.length + 1);
      return text.slice(0, place) + added + text.slice(place + removed);
    });
  check(
    fc.property(broken, (text) => {
      let value: unknown;
      try {
        value = JSON.parse(text);
      } catch {
        assert.throws(
          () => parseJsonText(text, "it"),
          (error: unknown) => {
            if (!isMooncakeKvError(error, "ERR_CONFIG")) return false;
            const { line, column } = error.details as { line: number; column: number };
            const row = text.split("\n")[line - 1];
            return row !== undefined && column >= 1 && column <= row.length + 1;
          },
        );
        return;
      }
      assert.equal(parseJsonText(text, "it"), value);
    }),
  );
});

test.run();
