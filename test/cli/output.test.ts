import { PassThrough, Writable } from "node:stream";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Output, OutputClosed } from "../../src/cli/output.js";

class Slow extends Writable {
  readonly sizes: number[] = [];
  open = 0;
  most = 0;

  override _write(chunk: Uint8Array, _encoding: string, done: () => void): void {
    this.sizes.push(chunk.length);
    this.most = Math.max(this.most, ++this.open);
    setImmediate(() => {
      this.open--;
      done();
    });
  }
}

test("many lines become few writes, one after the other, and none is lost", async () => {
  const stream = new Slow();
  const output = new Output(stream);
  await output.lines(Array.from({ length: 100_000 }, (_, index) => `line ${index}`));
  await output.flush();
  const total = Array.from({ length: 100_000 }, (_, index) => `line ${index}\n`.length).reduce(
    (a, b) => a + b,
  );
  assert.is(
    stream.sizes.reduce((a, b) => a + b),
    total,
  );
  assert.ok(stream.sizes.length < 40, `${stream.sizes.length} writes`);
  assert.is(stream.most, 1);
});

test("a reader that has gone away is told apart from a disk that is full", async () => {
  for (const [code, closed] of [
    ["EPIPE", true],
    ["ENOSPC", false],
  ] as const) {
    const stream = new Writable({
      write: (_chunk, _encoding, done) => done(Object.assign(new Error("write"), { code })),
    });
    const output = new Output(stream);
    await output.line("x");
    let thrown: unknown;
    await output.flush().catch((error) => {
      thrown = error;
    });
    assert.is(thrown instanceof OutputClosed, closed, code);
    if (!closed) assert.is((thrown as NodeJS.ErrnoException).code, code);
  }
});

test("discard forgets what was not written; detach leaves the stream as it was", async () => {
  const stream = new PassThrough();
  const output = new Output(stream);
  await output.line("forgotten");
  output.discard();
  await output.line("kept");
  await output.flush();
  output.detach();
  assert.is(String(stream.read()), "kept\n");
  assert.is(stream.listenerCount("error"), 0);
});

test.run();
