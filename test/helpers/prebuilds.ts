import { runProcess } from "../runner/process.js";

/** Milliseconds for both architectures from nothing, on a busy machine. */
const TIMEOUT_MS = 14 * 60_000;

/** How the script ends when the machine lacks a tool. */
const LACKING = 3;

/**
 * Makes what is missing or old of the prebuilt addons; what is current takes a second.
 *
 * @returns whether they are there. Where a tool is lacking a line says so; in CI that is a failure.
 * @throws Error when they don't compile.
 */
export async function makePrebuilds(): Promise<boolean> {
  const { code, output } = await runProcess("bash", ["scripts/prebuild.sh"], TIMEOUT_MS);
  if (code === 0) return true;
  if (code === LACKING) return lacking("the prebuilt addons can't be made here", output);
  throw new Error(`scripts/prebuild.sh ended with ${code}\n${output}`);
}

/**
 * Says what this machine lacks, so that a part of a test is left out.
 *
 * @throws Error in CI, where nothing may be lacking.
 */
export function lacking(what: string, more = ""): false {
  if (process.env["CI"]) throw new Error(`${what}\n${more}`);
  console.log(`NOT TESTED: ${what}`);
  if (more) console.log(more.trimEnd().split("\n").slice(-3).join("\n"));
  return false;
}
