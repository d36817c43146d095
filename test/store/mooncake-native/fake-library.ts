import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Builds `native/test/fake_mooncake.cc` with the C++ compiler alone; gives the path of the library. */
export function buildFakeLibrary(...flags: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), "mooncake-kv-fake-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const library = join(folder, "libmooncake_fake.so");
  execFileSync(
    process.env["CXX"] ?? "c++",
    [
      "-std=c++20",
      "-shared",
      "-fPIC",
      "-pthread",
      ...flags,
      "-o",
      library,
      join("native", "test", "fake_mooncake.cc"),
    ],
    { stdio: "inherit" },
  );
  return library;
}
