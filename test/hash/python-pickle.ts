import { spawnSync } from "node:child_process";
import type { HashableSpec } from "../../src/testing/arbitraries/hash-arbitraries.js";

/** Builds the values of a JSON list of specs with their identities and prints each one's pickle as hex. */
const PROGRAM = `
import json, pickle, sys

def build(spec, objects):
    if spec is None:
        return None
    if "ref" in spec:
        return objects[spec["ref"] % len(objects)] if objects else None
    if "int" in spec:
        return int(spec["int"])
    if "text" in spec:
        value = spec["text"] * spec.get("repeat", 1)
        if spec.get("plain"):
            return value
    elif "bytes" in spec:
        value = bytes.fromhex(spec["bytes"] * spec.get("repeat", 1))
    elif "ints" in spec:
        value = tuple(spec["ints"])
    else:
        value = tuple([build(item, objects) for item in spec["tuple"]])
    objects.append(value)
    return value

for spec in json.load(sys.stdin):
    print(pickle.dumps(build(spec, []), protocol=5).hex())
`;

/** The pickles that CPython writes for these values; or why there is no CPython of 3.8 or later to ask. */
export function pythonPickles(specs: readonly HashableSpec[]): string[] | { readonly missing: string } {
  const version = spawnSync("python3", ["-c", "import sys; print(sys.version_info >= (3, 8))"], {
    encoding: "utf8",
  });
  if (version.error || version.status !== 0) return { missing: "there is no python3 on this machine" };
  if (version.stdout.trim() !== "True") return { missing: "python3 is older than 3.8" };
  const run = spawnSync("python3", ["-c", PROGRAM], {
    input: JSON.stringify(specs),
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  if (run.status !== 0) throw new Error(`python3 failed: ${run.stderr || run.error}`);
  return run.stdout.trimEnd().split("\n");
}
