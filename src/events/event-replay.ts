import { loadZeroMq, plainFrames } from "../lookup/zeromq.js";
import { type EventMessage, parseReplayFrames } from "./event-frames.js";
import { sequenceFrame } from "./event-log.js";

/** Ends a replay that has not come to its end. */
export class ReplayTimeout extends Error {
  override readonly name = "ReplayTimeout";
}

/**
 * Asks a publisher for its kept batches from a number on, in their order. Each replay has a socket of its own, so that
 * what a broken-off one still sends can't get into the next.
 *
 * @param timeoutMs milliseconds that may pass between two messages.
 * @throws ReplayTimeout when the publisher falls silent before the end marker.
 */
export async function* replayEvents(
  endpoint: string,
  from: bigint,
  timeoutMs: number,
): AsyncGenerator<EventMessage> {
  const { Dealer } = await loadZeroMq();
  const socket = new Dealer({
    linger: 0,
    sendTimeout: timeoutMs,
    receiveTimeout: timeoutMs,
    receiveHighWaterMark: 0,
  });
  try {
    socket.connect(endpoint);
    await socket.send([new Uint8Array(0), sequenceFrame(from)]);
    for (;;) {
      const message = parseReplayFrames(plainFrames(await socket.receive()));
      if (message === "end") return;
      if (message !== undefined) yield message;
    }
  } catch (cause) {
    throw new ReplayTimeout(`no end of the replay from ${endpoint} within ${timeoutMs} ms`, { cause });
  } finally {
    socket.close();
  }
}
