import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ARCHITECTURES, prebuild, problemsOf } from "../../scripts/prebuilds/check.js";
import { readElf } from "../../scripts/prebuilds/elf.js";
import { BINDING_VERSION } from "../../src/native/addon.js";
import { findNative } from "../../src/native/load.js";
import { packageRoot, versionOfPackage } from "../../src/native/locations.js";
import { makePrebuilds } from "../helpers/prebuilds.js";
import { endOf, runFixture } from "./helpers/child.js";

const root = packageRoot();
const version = versionOfPackage(root)!;
const folder = mkdtempSync(join(tmpdir(), "mooncake-kv-"));
const made = await makePrebuilds();

for (const arch of made ? ARCHITECTURES : []) {
  test(`${arch}: runs on glibc 2.28 and nothing else`, () => {
    assert.equal(problemsOf(prebuild(root, arch), arch, version), []);
  });

  test(`${arch}: is small`, () => {
    const { size } = statSync(prebuild(root, arch));
    assert.ok(size > 300_000 && size < 2_000_000, `${size} bytes`);
  });

  test(`${arch}: the path of this processor's SHA-256 instructions is inside`, () => {
    assert.ok(readFileSync(prebuild(root, arch)).includes(arch === "x64" ? "sha-ni" : "armv8"));
  });
}

if (made && ["x64", "arm64"].includes(process.arch))
  test("the one for this machine loads, and takes the same way to SHA-256 as an own build", async () => {
    const path = prebuild(root, process.arch);
    const end = await runFixture("prebuild.ts", { environment: { MOONCAKE_KV_ADDON: path } });
    const { bindingVersion, packageVersion, sha256Path } = JSON.parse(endOf(end));
    assert.is(bindingVersion, BINDING_VERSION);
    assert.is(packageVersion, version);
    assert.is(sha256Path, findNative().addon.sha256Path);
  });

test("an addon as a compiler of this machine makes it would be refused", () => {
  const problems = problemsOf(findNative().path, process.arch, version).join("\n");
  assert.match(problems, /it needs libstdc\+\+\.so\.6/);
  assert.match(problems, /it needs .*GLIBCXX_3.*; the newest allowed is GLIBC_2\.28/);
});

test("another architecture, another version, no ELF file, no file", () => {
  const own = findNative().path;
  const other = process.arch === "x64" ? "arm64" : "x64";
  assert.match(problemsOf(own, other, version).join("\n"), `it is for ${process.arch}, not ${other}`);
  assert.match(problemsOf(own, process.arch, "77.7.7").join("\n"), "it was not built for version 77.7.7");
  const text = join(folder, "text.node");
  writeFileSync(text, "not a library");
  assert.match(problemsOf(text, "x64", version).join("\n"), "not a little-endian 64-bit ELF file");
  assert.match(problemsOf(join(folder, "none"), "x64", version).join("\n"), "can't be read: ENOENT");
});

test("the headers are read as readelf reads them", () => {
  const facts = readElf(readFileSync(findNative().path));
  const listed = execFileSync("readelf", ["-dW", findNative().path], { encoding: "utf8" });
  assert.equal(
    facts.needed,
    [...listed.matchAll(/\(NEEDED\).*\[(.+)\]/g)].map(([, name]) => name),
  );
  const versions = execFileSync("readelf", ["-VW", findNative().path], { encoding: "utf8" });
  assert.equal(
    [...new Set(facts.versions)].sort(),
    [
      ...new Set([...versions.matchAll(/Name: (\S+) +Flags: none +Version: \d+\n/g)].map(([, name]) => name)),
    ].sort(),
  );
});

test.after(() => rmSync(folder, { recursive: true }));
test.run();
