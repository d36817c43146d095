import type { BoundaryPut } from "../../../generated/typescript/index.js";
import type { MooncakeStoreConnectorMetadata } from "../../request/connector-metadata.js";
import type { BlockIds, CachedRequestData, NewRequestData } from "./scheduler-output.js";

/** A request is new, or has changed. Everything but the id may be null or left out where it is as before. */
export interface RequestChanged {
  readonly type: "RequestChanged";
  readonly reqId: string;
  /** Needed the first time. */
  readonly numPromptTokens?: number | null | undefined;
  /** Tokens of the prompt and those generated so far. Default: as before, at first those of the prompt. */
  readonly numTokens?: number | null | undefined;
  /** Tokens whose KV is computed. Default: as before, at first 0. */
  readonly numComputedTokens?: number | null | undefined;
  /** Hashes behind those that are known. */
  readonly newBlockHashes?: readonly Uint8Array[] | undefined;
  /** Tokens behind those that are known. Needed only where KV events are on. */
  readonly newTokenIds?: readonly number[] | undefined;
}

/** The engine asks what the store can add. */
export interface GetNumNewMatchedTokens {
  readonly type: "GetNumNewMatchedTokens";
  readonly reqId: string;
  readonly numComputedTokens: number;
}

/** The engine has given a request blocks. */
export interface UpdateStateAfterAlloc {
  readonly type: "UpdateStateAfterAlloc";
  readonly reqId: string;
  readonly blockIds: BlockIds;
  readonly numExternalTokens: number;
}

/** The current block table of a request: all engine cache groups. */
export interface RequestBlocks {
  readonly reqId: string;
  readonly blockIds: BlockIds;
}

/** Blocks of a request with a Mamba state at a token boundary; group ids are the engine's. */
export interface RequestBoundaryStates {
  readonly reqId: string;
  readonly offloads: readonly BoundaryPut[];
}

/** The engine has scheduled a step. A `SchedulerOutput` as plain data. */
export interface BuildConnectorMeta {
  readonly type: "BuildConnectorMeta";
  readonly scheduledNewReqs?: readonly NewRequestData[] | undefined;
  readonly scheduledCachedReqs?: readonly CachedRequestData[] | undefined;
  readonly numScheduledTokens?: ReadonlyMap<string, number> | undefined;
  readonly finishedReqIds?: readonly string[] | undefined;
  readonly preemptedReqIds?: readonly string[] | undefined;
  /** The current block tables of requests that may be saved. */
  readonly blockTables?: readonly RequestBlocks[] | undefined;
  /** Mamba states that the core hands over in this step. */
  readonly boundaryStateOffloads?: readonly RequestBoundaryStates[] | undefined;
}

/** Workers have reported jobs: by id, how many ranks. */
export interface UpdateConnectorOutput {
  readonly type: "UpdateConnectorOutput";
  readonly completedSaves: ReadonlyMap<number, number>;
}

/** A request has ended. */
export interface RequestFinished {
  readonly type: "RequestFinished";
  readonly reqId: string;
  readonly blockIds: BlockIds;
}

/** The Mamba states with which a request ends; group ids are the engine's. */
export interface RegisterFinishedPartialTail {
  readonly type: "RegisterFinishedPartialTail";
  readonly reqId: string;
  readonly blockIds: BlockIds;
  readonly offloads: readonly BoundaryPut[];
}

/** The store is to be emptied. */
export interface ResetCache {
  readonly type: "ResetCache";
}

/** What an engine tells the scheduler side: plain data, one kind a call. */
export type SchedulerEvent =
  | RequestChanged
  | GetNumNewMatchedTokens
  | UpdateStateAfterAlloc
  | BuildConnectorMeta
  | UpdateConnectorOutput
  | RequestFinished
  | RegisterFinishedPartialTail
  | ResetCache;

/** What each kind of event comes to. */
export interface SchedulerEventResults {
  readonly RequestChanged: undefined;
  readonly GetNumNewMatchedTokens: readonly [numNewTokens: number | null, loadAsync: boolean];
  readonly UpdateStateAfterAlloc: undefined;
  readonly BuildConnectorMeta: MooncakeStoreConnectorMetadata;
  readonly UpdateConnectorOutput: undefined;
  readonly RequestFinished: readonly [delayFree: false, params: null];
  readonly RegisterFinishedPartialTail: false;
  readonly ResetCache: Promise<boolean>;
}
