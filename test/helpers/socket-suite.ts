import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, type Test } from "uvu";

/** Tests with real sockets: each has a folder of its own for them, and everything is closed in the end. */
export interface SocketSuite {
  readonly test: Test;
  /** The folder of the test that runs. */
  folder(): string;
  /** Closes something when the test has ended: what was opened last comes first. */
  keep<T extends { close(): unknown }>(resource: T): T;
}

/** A suite of tests with real sockets. */
export function socketSuite(name: string): SocketSuite {
  const test = suite(name);
  const open: { close(): unknown }[] = [];
  let folder = "";
  test.before.each(async () => {
    folder = await mkdtemp(join(tmpdir(), "mkv-"));
  });
  test.after.each(async () => {
    for (const each of open.splice(0).reverse()) await each.close();
    await rm(folder, { recursive: true });
  });
  return {
    test,
    folder: () => folder,
    keep: (resource) => {
      open.push(resource);
      return resource;
    },
  };
}
