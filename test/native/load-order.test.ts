import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { glibcObstacle } from "../../src/native/libc.js";
import { findNative } from "../../src/native/load.js";
import { packageRoot, versionOfPackage } from "../../src/native/locations.js";
import { endOf, runFixture } from "./helpers/child.js";

// A copy of the package, whose addons are made up: which file is taken, and what is said of the others.

const real = findNative().path;
const version = versionOfPackage(packageRoot())!;
const folder = realpathSync(mkdtempSync(join(tmpdir(), "mooncake-kv-")));
/** Another version of the same length. */
const OLD = version.replaceAll(/\d/g, (digit) => String(9 - Number(digit)));
const OLD_REASON = `built for mooncake-kv ${OLD}; this is ${version}: build again`;
const PREBUILT = `prebuilds/${process.platform}-${process.arch}/mooncake_kv.node`;
const BUILT = "build/RelWithDebInfo/mooncake_kv.node";

interface Found {
  readonly path?: string;
  readonly passedOver?: readonly { readonly path: string; readonly reason: string }[];
  readonly error?: string;
}

/** The real addon as if another release had built it. */
function oldAddon(): Buffer {
  const addon = readFileSync(real);
  const at = addon.indexOf(`\0${version}\0`);
  assert.ok(at > 0, "the addon must hold the version");
  addon.write(OLD, at + 1);
  return addon;
}

/** Which file each of some calls takes. */
async function found(
  addons: Readonly<Record<string, "real" | "old" | "garbage">>,
  calls = 1,
): Promise<Found[]> {
  const root = mkdtempSync(join(folder, "package-"));
  cpSync("src", join(root, "src"), { recursive: true });
  cpSync("generated", join(root, "generated"), { recursive: true });
  symlinkSync(realpathSync("node_modules"), join(root, "node_modules"));
  writeFileSync(join(root, "package.json"), JSON.stringify({ name: "mooncake-kv", version, type: "module" }));
  for (const [path, content] of Object.entries(addons)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    if (content === "real") cpSync(real, join(root, path));
    else writeFileSync(join(root, path), content === "old" ? oldAddon() : "not a library");
  }
  const end = await runFixture("load-order.ts", {
    scriptArguments: [root, real, String(calls)],
    environment: { XDG_CACHE_HOME: join(root, "cache"), MOONCAKE_KV_ADDON: "" },
  });
  const results = JSON.parse(endOf(end)) as Found[];
  return results.map(({ path, passedOver, ...rest }) => ({
    ...rest,
    ...(path ? { path: relative(root, path) } : {}),
    ...(passedOver
      ? { passedOver: passedOver.map((one) => ({ ...one, path: relative(root, one.path) })) }
      : {}),
  }));
}

test("an own build goes before what the package brings", async () => {
  const [first] = await found({ [BUILT]: "real", [PREBUILT]: "real" });
  assert.equal(first, { path: BUILT, passedOver: [] });
});

test("what the package brings is taken where nothing was built, or what was built does not load", async () => {
  const [alone] = await found({ [PREBUILT]: "real" });
  assert.is(alone!.path, PREBUILT);
  assert.ok(alone!.passedOver!.every(({ reason }) => reason === "no such file"));
  const [behind] = await found({ [BUILT]: "garbage", [PREBUILT]: "real" });
  assert.is(behind!.path, PREBUILT);
  assert.is(behind!.passedOver![0]!.path, BUILT);
  assert.is.not(behind!.passedOver![0]!.reason, "no such file");
});

test("an own build of another release does not stand in the way", async () => {
  const [first] = await found({ [BUILT]: "old", [PREBUILT]: "real" });
  assert.is(first!.path, PREBUILT);
  assert.equal(first!.passedOver![0], { path: BUILT, reason: OLD_REASON });
});

test("addons of another release are never taken, and the error says so of each", async () => {
  const [first] = await found({ [BUILT]: "old", [PREBUILT]: "old" });
  for (const path of [BUILT, PREBUILT])
    assert.ok(first!.error!.includes(`${path}: ${OLD_REASON}`), first!.error);
});

test("a new build in the place of a refused one loads in the same process", async () => {
  const [before, after] = await found({ [BUILT]: "old" }, 2);
  assert.ok(before!.error!.includes(OLD_REASON), before!.error);
  assert.is(after!.path, BUILT);
});

test("an addon for glibc is not tried where the C library is musl", () => {
  const line = (path: string) => `7f0000000000-7f0000001000 r-xp 00000000 08:01 42    ${path}\n`;
  assert.match(
    glibcObstacle(line("/usr/bin/node") + line("/lib/ld-musl-x86_64.so.1")) ?? "",
    /glibc 2\.28 .* musl/,
  );
  assert.is(glibcObstacle(line("/usr/bin/node") + line("/lib/x86_64-linux-gnu/libc.so.6")), undefined);
  assert.is(glibcObstacle(""), undefined);
  assert.is(glibcObstacle(), undefined, "the tests run on glibc");
});

test.after(() => rmSync(folder, { recursive: true }));
test.run();
