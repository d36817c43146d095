import { PassThrough } from "node:stream";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { BuildProgress } from "../../../src/cli/native-build/build-progress.js";

function shown(isTTY: boolean, output: readonly string[]): string {
  const stream = Object.assign(new PassThrough(), { isTTY });
  const progress = new BuildProgress(stream);
  for (const text of output) progress.take(text);
  progress.end();
  return String(stream.read() ?? "");
}

const clear = "\r\u001b[K";
const line = (state: string) => `${clear}building the native addon: ${state}`;

test("on a terminal the steps of ninja stand on one line, which goes in the end", () => {
  const output = [
    "-- Configuring done\n[1/61] Building",
    " CXX object a\n[2/61] B\n",
    "[2/61] again\nwarning: [3/61]\n",
  ];
  assert.is(shown(true, output), `${line("setting up")}${line("1/61")}${line("2/61")}${clear}`);
});

test("make counts per cents", () => {
  assert.is(shown(true, ["[  7%] Building\n"]), `${line("setting up")}${line("7%")}${clear}`);
});

test("anything but a terminal sees nothing", () => {
  assert.is(shown(false, ["[1/61] Building\n"]), "");
});

test.run();
