import type { Test } from "uvu";

/** Closes, after each test, what the test opened, the last first: a test that fails leaves nothing that runs on. */
export function closing(test: Test): <T extends { close(): unknown }>(resource: T) => T {
  const open: { close(): unknown }[] = [];
  test.after.each(async () => {
    for (let last = open.pop(); last !== undefined; last = open.pop()) await last.close();
  });
  return (resource) => {
    open.push(resource);
    return resource;
  };
}
