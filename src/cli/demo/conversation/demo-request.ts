import type { StoreRequest } from "../../../connector/scheduler/store-request.js";
import type { BlockHashSession } from "../../../hash/block-hash-session.js";
import type { BlockHasher } from "../../../hash/block-hasher.js";
import type { BlockTables } from "./block-tables.js";

/** A request that runs on an engine. */
export class DemoRequest implements StoreRequest {
  readonly requestId: string;
  readonly numPromptTokens: number;
  readonly allTokenIds: number[] = [];
  readonly blockHashes: Uint8Array[] = [];
  readonly tables: BlockTables;
  numComputedTokens = 0;
  /** Whether the scheduler side has seen it scheduled. */
  scheduled = false;
  /** Whether it must be admitted as a request that was preempted. */
  preempted = false;
  readonly #session: BlockHashSession;

  constructor(requestId: string, prompt: readonly number[], hasher: BlockHasher, tables: BlockTables) {
    this.requestId = requestId;
    this.numPromptTokens = prompt.length;
    this.tables = tables;
    this.#session = hasher.session();
    this.append(prompt);
  }

  get numTokens(): number {
    return this.allTokenIds.length;
  }

  /** Adds tokens: the prompt, then what the model generates. */
  append(tokens: readonly number[]): void {
    for (const token of tokens) this.allTokenIds.push(token);
    this.#session.append(tokens);
    const { hashes } = this.#session;
    for (let i = this.blockHashes.length; i < hashes.length; i++) this.blockHashes.push(hashes.at(i)!);
  }
}
