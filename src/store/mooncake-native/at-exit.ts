/** Milliseconds that closing may hold up the end of the process. Destroying a client takes one or two seconds. */
const WAIT_MS = 2_500;

type CloseNow = (milliseconds: number) => boolean;

const open = new Set<CloseNow>();

/**
 * Closes a client that is still open when the process ends: the library waits at exit for a client that was not
 * destroyed. Gives a function that takes it back.
 */
export function closeAtExit(closeNow: CloseNow): () => void {
  if (open.size === 0) process.on("exit", closeAll);
  open.add(closeNow);
  return () => {
    open.delete(closeNow);
    if (open.size === 0) process.off("exit", closeAll);
  };
}

function closeAll(): void {
  const end = performance.now() + WAIT_MS;
  for (const closeNow of open) closeNow(Math.max(0, Math.round(end - performance.now())));
}
