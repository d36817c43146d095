import { tell } from "../lookup/tell.js";
import { type DecodedEventBatch, decodeEventBatch } from "./decode-batch.js";
import { type EventMessage, frameSizes, isSameMessage, parseEventFrames } from "./event-frames.js";
import { ReplayFailure, replayEvents } from "./event-replay.js";
import { SequenceTracker, type SequenceVerdict } from "./sequence-tracker.js";
import type { SubscribedMessage } from "./subscribed-message.js";
import type { CheckedSubscriberOptions } from "./subscriber-options.js";
import {
  newSubscriberCounters,
  type SubscriberCounters,
  type SubscriberProblem,
} from "./subscriber-problems.js";

type LostReason = (SubscribedMessage & { readonly kind: "lost" })["reason"];
type Messages = AsyncGenerator<SubscribedMessage>;

/**
 * What is known of one publisher, over all connections to it: makes of what comes through a connection, and of replays,
 * what a subscription gives.
 *
 * A replay may be answered by another process than the one that sends through the connection: one has died, and its
 * messages still wait to be read. So each answer is compared with what was received, at both ends: the batch before the
 * first that is missing, and the one after the last.
 */
export class EventFollower {
  readonly #options: CheckedSubscriberOptions;
  readonly #ended: AbortSignal;
  readonly #tracker = new SequenceTracker();
  /** The batch before the due one, as it was received: another engine has another one there. */
  #last: EventMessage | undefined;
  #distrusted = false;
  readonly counters: SubscriberCounters = newSubscriberCounters();

  /** @param ended breaks off what is under way. */
  constructor(options: CheckedSubscriberOptions, ended: AbortSignal) {
    this.#options = options;
    this.#ended = ended;
    // What is missing before the first message is then a gap, even if the first replay fails.
    if (options.from === "beginning") this.#tracker.passed(0n);
  }

  /** Number of the batch that is due; undefined before the first one. */
  get due(): bigint | undefined {
    return this.#tracker.due;
  }

  /** Whether what the connection brings may be of an engine that is gone: there has to be a new one. */
  get distrusted(): boolean {
    return this.#distrusted;
  }

  /** A connection has begun: who is there now, and what was missed? */
  async *connected(): Messages {
    this.#distrusted = false;
    const { due } = this.#tracker;
    if (due === undefined) return;
    if (this.#options.replayEndpoint !== undefined) yield* this.#catchUp(due);
    else yield this.#unproven(due, "there is no replay endpoint to ask");
  }

  /** A message has come through the connection. */
  async *received(frames: readonly Uint8Array[]): Messages {
    const message = parseEventFrames(frames);
    if (message === undefined) {
      this.counters.malformed++;
      this.report(
        "frames",
        `a message of ${frameSizes(frames)} is no batch of events; an engine sends three, topic, number of 8 bytes and ` +
          `payload: is ${this.#options.endpoint} the endpoint of its KV events?`,
      );
      return;
    }
    const { sequence } = message;
    const repeated = sequence === this.#tracker.lastLive && this.#isLast(message);
    const verdict: SequenceVerdict = repeated ? { kind: "duplicate" } : this.#tracker.live(sequence);
    if (verdict.kind === "duplicate") {
      this.counters.duplicates++;
      return;
    }
    if (verdict.kind === "gap") {
      this.counters.gaps++;
      yield* this.#fill(message);
    } else if (verdict.kind === "restart") {
      yield this.#restarted("the numbers of the batches have begun anew", sequence);
      if (sequence > 0n) yield* this.#fill(message);
    }
    if (this.#distrusted || this.#ended.aborted) return;
    this.#tracker.passed(sequence + 1n);
    yield this.#batch(message, false);
  }

  /** Replays from a number on. Where the batch before it is known, another one in its place means another engine. */
  async *#catchUp(from: bigint): Messages {
    const last = this.#before(from);
    let proven = last === undefined;
    try {
      for await (const message of this.#replay(last === undefined ? from : last.sequence)) {
        if (proven) yield* this.#replayed(message);
        else if (isSameMessage(message, last!)) proven = true;
        else break;
      }
    } catch (error) {
      const problem = this.#replayFailed(error, from);
      if (!proven) yield this.#unproven(from, problem);
      return;
    }
    if (proven || this.#ended.aborted) return;
    // An engine keeps its last batch: this one has another in its place, or none.
    yield this.#restarted(`batch ${last!.sequence} is not the one that was received, or not kept any more`);
    yield* this.#catchUp(0n);
  }

  /** Replays what is missing before a live message. */
  async *#fill(live: EventMessage): Messages {
    const from = this.#tracker.due!;
    const last = this.#before(from);
    let proven = last === undefined;
    let problem = "there is no replay endpoint";
    let another = false;
    if (this.#options.replayEndpoint !== undefined) {
      problem = "the publisher has not kept them";
      try {
        for await (const message of this.#replay(last === undefined ? from : last.sequence)) {
          if (!proven) {
            another = !isSameMessage(message, last!);
            if (another) break;
            proven = true;
            continue;
          }
          if (message.sequence >= live.sequence) {
            another = message.sequence === live.sequence && !isSameMessage(message, live);
            break;
          }
          yield* this.#replayed(message);
        }
      } catch (error) {
        problem = this.#replayFailed(error, from);
      }
    }
    if (this.#ended.aborted) return;
    if (another) {
      // Whether the live message is of this engine or of the one before, nobody can say.
      this.#distrusted = true;
      yield this.#restarted("a replay was answered by another engine than the one whose batches have come");
      return;
    }
    yield* this.#gap(live.sequence, problem);
  }

  #replay(from: bigint): AsyncGenerator<EventMessage> {
    const { replayEndpoint, replayLimits } = this.#options;
    return replayEvents(replayEndpoint!, from, replayLimits, this.#ended);
  }

  *#replayed(message: EventMessage): Generator<SubscribedMessage> {
    const { sequence } = message;
    yield* this.#gap(sequence, "the publisher has not kept them");
    this.#tracker.passed(sequence + 1n);
    yield this.#batch(message, true);
  }

  /** The batches before `until` that have not come are lost. */
  *#gap(until: bigint, problem: string): Generator<SubscribedMessage> {
    const due = this.#tracker.due!;
    if (due >= until) return;
    this.#tracker.passed(until);
    yield this.#lost("gap", due, until - 1n, problem);
  }

  #isLast(message: EventMessage): boolean {
    return this.#last !== undefined && isSameMessage(message, this.#last);
  }

  /** The last batch, if it is the one before a number. */
  #before(from: bigint): EventMessage | undefined {
    return this.#last?.sequence === from - 1n ? this.#last : undefined;
  }

  /** Another engine is there: what the old one had is gone. */
  #restarted(message: string, lastLive?: bigint): SubscribedMessage {
    this.counters.restarts++;
    this.#tracker.restart(lastLive);
    this.#last = undefined;
    return this.#lost("restart", 0n, -1n, message);
  }

  /** What was known is not to be trusted. What the engine has kept, if it can say, comes before its next batch. */
  #unproven(due: bigint, why: string): SubscribedMessage {
    this.counters.unprovenReconnects++;
    if (this.#options.replayEndpoint === undefined) this.#tracker.forget();
    else this.#tracker.restart();
    this.#last = undefined;
    const message = `whether the engine is still the same can't be told: ${why}`;
    return this.#lost("reconnect", due, due - 1n, message);
  }

  #replayFailed(error: unknown, from: bigint): string {
    if (!(error instanceof ReplayFailure)) throw error;
    this.counters.failedReplays++;
    this.counters.replayFailures[error.reason]++;
    this.report("replay", error.message, from);
    return error.message;
  }

  #batch(message: EventMessage, replayed: boolean): SubscribedMessage {
    const { topic, sequence, payload } = message;
    // A payload is memory of one message, which nobody else writes to.
    this.#last = message;
    let batch: DecodedEventBatch;
    try {
      batch = decodeEventBatch(payload);
    } catch (error) {
      this.counters.malformed++;
      this.report("batch", (error as Error).message, sequence);
      return this.#lost("malformed", sequence, sequence, (error as Error).message);
    }
    this.counters[replayed ? "replayed" : "batches"]++;
    this.counters.malformedEvents += batch.malformedEvents;
    this.counters.unknownEvents += batch.unknownEvents;
    this.counters.unknownFields += batch.unknownFields;
    for (const problem of batch.problems) this.report("event", problem.message, sequence);
    return { kind: "batch", sequence, topic: Buffer.from(topic).toString(), batch, replayed };
  }

  #lost(reason: LostReason, from: bigint, to: bigint, message: string): SubscribedMessage {
    if (reason === "gap" || reason === "malformed") this.counters.lost += Number(to - from + 1n);
    return { kind: "lost", reason, from, to, message };
  }

  /** Tells the user of a problem. */
  report(reason: SubscriberProblem["reason"], message: string, sequence?: bigint): void {
    tell(this.#options.onProblem, { reason, message, ...(sequence !== undefined && { sequence }) });
  }
}
