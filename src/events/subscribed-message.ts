import type { DecodedEventBatch } from "./decode-batch.js";

/** What a subscription gives, in order. */
export type SubscribedMessage =
  | {
      readonly kind: "batch";
      readonly sequence: bigint;
      readonly topic: string;
      readonly batch: DecodedEventBatch;
      /** Whether it comes from a replay. */
      readonly replayed: boolean;
    }
  /**
   * Batches are lost for good. `gap`: they could not be replayed. `restart`: the engine is another one, its cache empty.
   * `reconnect`: the connection was gone, and nobody can say whether the engine is the same. After these three, what was
   * known of the engine's cache may be wrong, and has to be forgotten. `malformed`: one payload is no batch.
   */
  | {
      readonly kind: "lost";
      readonly reason: "gap" | "malformed" | "restart" | "reconnect";
      /** First and last number that is lost. Of a restart and a reconnection none is: `to` is the one before `from`. */
      readonly from: bigint;
      readonly to: bigint;
      readonly message: string;
    };
