import { readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { repositoryFiles } from "./files.js";
import { ROOMS, roomBreaches } from "./rooms.js";

// A line of code must know its room: imports go backwards in the order of the rooms, and the first rooms are pure.

const sources = repositoryFiles().filter((file) => /^(src|generated\/typescript)\/.*\.ts$/.test(file));

test("the rooms are found", () => {
  for (const room of ["generated/", "src/wire/", "src/hash/", "src/key/", "src/chunk/", "src/testing/"])
    assert.ok(
      sources.some((file) => file.startsWith(room)),
      room,
    );
  const folders = new Set(sources.flatMap((file) => /^src\/([^/]+)\//.exec(file)?.[1] ?? []));
  assert.equal(
    [...folders].filter((folder) => folder !== "platform" && !(ROOMS as readonly string[]).includes(folder)),
    [],
  );
});

test("no source file breaks the order of the rooms or the purity of the first ones", () => {
  assert.equal(
    sources.flatMap((file) => roomBreaches(file, readFileSync(file, "utf8"))),
    [],
  );
});

const wrong: readonly [string, string, string, RegExp][] = [
  [
    "a later room",
    "src/hash/x.ts",
    'import { PoolKey } from "../key/pool-key.js";',
    /a later room than hash/,
  ],
  [
    "a type of a later room",
    "src/key/x.ts",
    'import type { A } from "../layout/a.js";',
    /a later room than key/,
  ],
  [
    "a re-export of a later room",
    "src/chunk/x.ts",
    'export * from "../store/index.js";',
    /a later room than chunk/,
  ],
  [
    "an import type of a later room",
    "src/key/x.ts",
    'type A = import("../cli/a.js").A;',
    /a later room than key/,
  ],
  [
    "a dynamic import of a later room",
    "src/store/x.ts",
    'await import("../cli/a.js");',
    /a later room than store/,
  ],
  [
    "generated code into a room",
    "generated/typescript/a/x.ts",
    'import "../../../src/hash/a.js";',
    /a later room than generated/,
  ],
  [
    "what generated code stands on into generated code",
    "src/wire/x.ts",
    'import "../../generated/typescript/index.js";',
    /a later room than wire/,
  ],
  ["the errors into a room", "src/errors.ts", 'export * from "./hash/a.js";', /beyond the shared files/],
  ["Python's text into a room", "src/python-text.ts", 'import "./hash/a.js";', /beyond the shared files/],
  ["the clock of Python's text", "src/python-text.ts", "Date.now();", /Date in a pure room/],
  ["the entry into what is not pure", "src/index.ts", 'export * from "./store/index.js";', /not pure/],
  ["a room into the entry", "src/layout/x.ts", 'import "../index.js";', /lies in no room/],
  ["a room into the tests", "src/testing/x.ts", 'import "../../test/helpers/a.js";', /lies in no room/],
  ["a room into the platform", "src/hash/x.ts", 'import "../platform/node.js";', /lies in no room/],
  [
    "the search into the lookup",
    "src/coordinator/search/x.ts",
    'import "../lookup/a.js";',
    /coordinator\/search may not know/,
  ],
  [
    "the worker into the scheduler",
    "src/connector/worker/x.ts",
    'import "../scheduler/a.js";',
    /connector\/worker may not know/,
  ],
  ["conformance into the tests' tools", "src/conformance/x.ts", 'import "../testing/a.js";', /a later room/],
  ["an unknown room", "src/misc/x.ts", 'import "../hash/a.js";', /unknown room misc/],
  [
    "a backend into another",
    "src/store/mooncake/x.ts",
    'import { Deadline } from "../admin/deadline.js";',
    /store\/mooncake may not know/,
  ],
  [
    "a backend into what stands above it",
    "src/store/embedded/x.ts",
    'import type { KvStore } from "../kv-store.js";',
    /store\/embedded may not know/,
  ],
  [
    "what backends share into a backend",
    "src/store/shared/x.ts",
    'import "../embedded/options.js";',
    /store\/shared may not know/,
  ],
  [
    "what backends share into the port",
    "src/store/shared/x.ts",
    'import type { Answer } from "../backend.js";',
    /store\/shared may not know/,
  ],
  [
    "what backends share into the cluster's part",
    "src/store/shared/x.ts",
    'import "../cluster/settings.js";',
    /store\/shared may not know/,
  ],
  ["node:crypto", "src/hash/x.ts", 'import { hash } from "node:crypto";', /node:crypto, which is not pure/],
  ["a package", "src/key/x.ts", 'import fc from "fast-check";', /fast-check, which is not pure/],
  ["a buffer", "src/key/x.ts", 'const bytes = Buffer.from("a");', /Buffer in a pure room/],
  ["files", "src/layout/x.ts", 'import { readFileSync } from "node:fs";', /node:fs, which is not pure/],
  [
    "the addon loader's module",
    "src/hash/x.ts",
    'import { createRequire } from "node:module";',
    /node:module/,
  ],
  ["a computed import", "src/hash/x.ts", "await import(name);", /nobody can check/],
  [
    "the environment",
    "src/hash/x.ts",
    'const seed = process.env["PYTHONHASHSEED"];',
    /process in a pure room/,
  ],
  [
    "the environment through the global object",
    "src/key/x.ts",
    "globalThis.process.env;",
    /globalThis in a pure room/,
  ],
  ["the clock", "src/request/x.ts", "const now = Date.now();", /Date in a pure room/],
  ["a new date", "src/request/x.ts", "const now = new Date();", /Date in a pure room/],
  ["the other clock", "src/coordinator/x.ts", "const now = performance.now();", /performance in a pure room/],
  ["the environment, as a shorthand", "src/key/x.ts", "const all = { process };", /process in a pure room/],
];
for (const [name, file, text, message] of wrong)
  test(`caught: ${name}`, () => {
    const breaches = roomBreaches(file, text);
    assert.is(breaches.length, 1, breaches.join("\n"));
    assert.match(breaches[0]!, message);
  });

const right: readonly [string, string][] = [
  [
    "src/key/x.ts",
    'import { a } from "../hash/a.js"; import { b } from "./b.js"; import { describe } from "../errors.js";',
  ],
  ["src/hash/x.ts", 'import { sha256 } from "#platform"; const load = () => import("hash-wasm");'],
  ["src/coordinator/lookup/x.ts", 'import "../search/a.js"; import "../checks.js"; import "./b.js";'],
  ["src/layout/x.ts", 'import type { A } from "../../generated/typescript/vllm-0.33/layout.js";'],
  ["src/hash/x.ts", 'const a = { Date: 1 }; a.Date; "process.env"; // Date.now()'],
  ["src/cli/x.ts", 'import { readFileSync } from "node:fs"; process.env["A"]; Date.now();'],
  ["src/testing/x.ts", 'import fc from "fast-check"; import "../layout/a.js"; import "../conformance/b.js";'],
  [
    "src/store/mooncake/x.ts",
    'import type { StoreBackend } from "../backend.js"; import "../shared/a.js"; import "../cluster/b.js"; import "./c.js";',
  ],
  ["src/store/checked-store.ts", 'import "./shared/a.js"; import "./backend.js"; import "./mooncake/a.js";'],
  ["src/store/cluster/x.ts", 'import "../shared/a.js"; import "./b.js"; import "../../errors.js";'],

  ["src/python-text.ts", 'import { describe } from "./errors.js";'],
  ["src/lookup/x.ts", 'import { pythonText } from "../python-text.js";'],
  ["src/index.ts", 'export * from "./hash/index.js"; export * from "./errors.js";'],
];
for (const [file, text] of right)
  test(`allowed: ${text.slice(0, 60)}`, () => {
    assert.equal(roomBreaches(file, text), []);
  });

test.run();
