import type { Router } from "zeromq";
import {
  blockStored,
  EventHashes,
  type EventLog,
  type KVEventBatch,
  type SubscribedMessage,
} from "../../src/events/index.js";
import { loadZeroMq } from "../../src/lookup/zeromq.js";

/** A batch that stores one block, and is made at a time of its own. */
export const batchOf = (id: number): KVEventBatch => ({
  ts: id,
  events: [blockStored({ blockHashes: EventHashes.from([BigInt(id)]), blockSize: 16, medium: "GPU" })],
  dataParallelRank: null,
});

/** A message in short: `b3` a live batch, `r3` a replayed one, `gap3-4` lost ones. */
export function short(message: SubscribedMessage): string {
  if (message.kind === "lost") return `${message.reason}${message.from}-${message.to}`;
  return `${message.replayed ? "r" : "b"}${message.sequence}`;
}

/** How an engine answers a request for a replay. */
export type ReplayAnswer = (router: Router, identity: Uint8Array, start: Uint8Array) => Promise<void>;

/** Answers as an engine does. */
export const fromLog =
  (log: EventLog): ReplayAnswer =>
  async (router, identity, start) => {
    for (const frames of log.replay(start)) await router.send([identity, ...frames]);
  };

/** The replay socket of an engine. */
export interface ReplaySocket {
  /** Numbers of the requests, in order. */
  readonly asked: readonly bigint[];
  /** Resolves with the next request. */
  request(): Promise<void>;
  close(): void;
}

/** Binds a replay socket. */
export async function replaySocket(endpoint: string, answer: ReplayAnswer): Promise<ReplaySocket> {
  const { Router } = await loadZeroMq();
  const router = new Router({ linger: 0, sendHighWaterMark: 100_000 });
  await router.bind(endpoint);
  const asked: bigint[] = [];
  const listeners: (() => void)[] = [];
  void (async () => {
    while (!router.closed) {
      const request = await router.receive().catch(() => undefined);
      if (request === undefined) return;
      asked.push(Buffer.from(request[2]!).readBigUInt64BE());
      for (const listener of listeners.splice(0)) listener();
      void answer(router, request[0]!, request[2]!).catch(() => {});
    }
  })();
  return {
    asked,
    request: () => new Promise<void>((resolve) => listeners.push(resolve)),
    close: () => router.close(),
  };
}
