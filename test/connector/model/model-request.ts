import type { StoreRequest } from "../../../src/connector/scheduler/store-request.js";
import { BLOCK_TOKENS, familyHashes } from "./truth.js";

/** Where a request is in its life. */
type Phase = "waiting" | "loading" | "ready" | "running";

/** A request of the little engine. */
export class ModelRequest {
  readonly id: string;
  readonly family: number;
  readonly promptTokens: number;
  /** Tokens with which it ends. */
  readonly lastTokens: number;
  numTokens: number;
  computed: number = 0;
  phase: Phase = "waiting";
  /** Blocks of each cache group. */
  tables: number[][];
  /** Whether it was scheduled before, and preempted since. */
  resumes: boolean = false;
  preemptions: number = 0;
  /** The step in which it last came any further. */
  progressed: number;

  constructor(options: {
    readonly id: string;
    readonly family: number;
    readonly promptTokens: number;
    readonly lastTokens: number;
    readonly groups: number;
    readonly step: number;
  }) {
    this.id = options.id;
    this.family = options.family;
    this.promptTokens = options.promptTokens;
    this.lastTokens = options.lastTokens;
    this.numTokens = options.promptTokens;
    this.tables = Array.from({ length: options.groups }, () => []);
    this.progressed = options.step;
  }

  /** As the scheduler side reads it now. */
  view(): StoreRequest {
    return {
      requestId: this.id,
      numPromptTokens: this.promptTokens,
      numTokens: this.numTokens,
      numComputedTokens: this.computed,
      blockHashes: familyHashes(this.family, Math.floor(this.numTokens / BLOCK_TOKENS)),
      allTokenIds: Array.from({ length: this.numTokens }, (_, index) => this.family * 1_000 + index),
    };
  }
}

/** A load of a request that was handed out. */
export interface ModelLoad {
  readonly request: ModelRequest;
  readonly tables: readonly (readonly number[])[];
  readonly hitLength: number;
  /** Ranks that have not said that loads of this request have ended. */
  readonly ranks: Set<number>;
  /** Blocks that some rank did not fill, by id; in several groups, whether some rank has failed. */
  readonly lost: Set<number>;
  failed: boolean;
  /** Whether its request was aborted meanwhile: then it only waits for its blocks. */
  orphaned: boolean;
  readonly since: number;
}
