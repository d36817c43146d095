export {
  BlockIndex,
  type BlockIndexOptions,
} from "./block-index/block-index.js";
export type { BlockIndexEngineInit, BlockIndexGroupInit } from "./block-index/engine-config.js";
export type {
  BlockIndexCounters,
  BlockIndexProblem,
  BlockIndexProblemReason,
} from "./block-index/index-counters.js";
export type {
  GroupExplanation,
  MatchExplanation,
  MatchShortening,
  PromptBlock,
} from "./block-index/match-explanation.js";
export type { MatchOptions } from "./block-index/match-options.js";
export type { EngineMatch } from "./block-index/prefix-match.js";
export { type DecodedEventBatch, decodeEventBatch, type EventProblem } from "./decode-batch.js";
export { type EncodeOptions, encodeEvent, encodeEventBatch } from "./encode-batch.js";
export { isBindEndpoint, offsetEndpointPort } from "./endpoint.js";
export { blockHashId, EventHashes, type PromptHashes } from "./event-hashes.js";
export { END_SEQ, EventLog, type EventLogOptions } from "./event-log.js";
export type { ReplayFailureReason } from "./event-replay.js";
export { EventSubscriber, type SubscribedMessage } from "./event-subscriber.js";
export { KvEventQuorum, MooncakeStoreKVEvents } from "./kv-event-aggregator.js";
export {
  type AllBlocksCleared,
  type BlockRemoved,
  type BlockStored,
  type BlockStoredInit,
  blockRemoved,
  blockStored,
  type ExtraKey,
  type KVCacheEvent,
  type KVEventBatch,
  MEDIUM_CPU,
  MEDIUM_GPU,
  MEDIUM_STORAGE,
} from "./kv-events.js";
export { SequenceTracker, type SequenceVerdict } from "./sequence-tracker.js";
export type { EventSubscriberOptions } from "./subscriber-options.js";
export type { SubscriberCounters, SubscriberProblem } from "./subscriber-problems.js";
export {
  type PublisherProblem,
  ZmqEventPublisher,
  type ZmqEventPublisherOptions,
} from "./zmq-event-publisher.js";
