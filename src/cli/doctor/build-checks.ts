import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { isMooncakeKvError } from "../../errors.js";
import { findNative } from "../../native/load.js";
import { type Finding, missing, ok } from "./finding.js";

const COMPILERS = ["c++", "g++", "clang++"];

type Environment = Readonly<Record<string, string | undefined>>;

/** The addon, and what is needed to build it where it is missing. `addonNeeded`: the store that was asked for runs on it. */
export async function buildChecks(environment: Environment, addonNeeded: boolean): Promise<Finding[]> {
  const addon = checkAddon(addonNeeded);
  const needed = addon.status === "missing";
  const compilers = await Promise.all(COMPILERS.map((name) => versionOf(name, environment)));
  const compiler = compilers.find((version) => version !== undefined);
  const cmake = await versionOf("cmake", environment);
  return [
    addon,
    compiler
      ? ok("C++ compiler", compiler)
      : missing("C++ compiler", needed, `none of ${COMPILERS.join(", ")} is on the PATH`, [
          "Install a C++20 compiler: apt-get install g++",
        ]),
    cmake
      ? ok("CMake", cmake)
      : missing("CMake", needed, "cmake is not on the PATH", [
          "Install CMake 3.20 or later: apt-get install cmake",
        ]),
  ];
}

function checkAddon(needed: boolean): Finding {
  try {
    const { addon, path, passedOver } = findNative();
    const detail = `${path}, version ${addon.packageVersion}, SHA-256 by ${addon.sha256Path}`;
    const unusable = passedOver.filter(({ reason }) => reason !== "no such file");
    if (unusable.length > 0)
      return missing(
        "native addon",
        false,
        `${detail}; passed over: ${unusable.map(({ path, reason }) => `${path}: ${reason}`).join("; ")}`,
        ["Delete the files that were passed over, or build again: npx mooncake-kv build"],
      );
    return ok("native addon", detail);
  } catch (error) {
    const attempts = isMooncakeKvError(error)
      ? (error.details["attempts"] as { path: string; reason: string }[])
      : [];
    return missing(
      "native addon",
      needed,
      attempts.map(({ path, reason }) => `${path}: ${reason}`).join("; ") || String(error),
      [
        "Build it: npm install cmake-js node-addon-api && npx mooncake-kv build (in a checkout: npm run build:native)",
      ],
    );
  }
}

/** The first line of `--version`; undefined when the program is not there. */
async function versionOf(program: string, environment: Environment): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)(program, ["--version"], {
      env: { ...environment } as NodeJS.ProcessEnv,
      timeout: 10_000,
    });
    return stdout.split("\n", 1)[0]!.trim();
  } catch {
    return undefined;
  }
}
