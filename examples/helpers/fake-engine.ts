// An engine without a model: it answers like vLLM's OpenAI-compatible server, keeps a prefix cache of block hashes, and
// publishes what it stores there, as vLLM does.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type BlobBlockHashes, BlockHasher } from "mooncake-kv";
import {
  blockRemoved,
  blockStored,
  EventHashes,
  type KVCacheEvent,
  ZmqEventPublisher,
} from "mooncake-kv/events";
import { type Json, tokenize, tokensOf } from "./fake-tokenizer.js";

/** What a fake engine is like. */
export interface FakeEngineOptions {
  readonly blockSize: number;
  /** Where it publishes; `ipc://...` is bound. */
  readonly events: string;
  readonly replay: string;
  /** Tokens of the sliding window of a second cache group. Default: none, one group of full attention. */
  readonly slidingWindow?: number;
  /** Whether it can render prompts, as vLLM can since `/render` exists; else it only has `/tokenize`. Default: true. */
  readonly renders?: boolean;
}

/**
 * What is wrong with a fake engine. `overloaded` answers 503 and `failing` 500 to completions, `breaking` closes the
 * connection instead, `cut` in the middle of a stream; `no-tokens` and `mute-tokens` answer 500, or nothing, to questions for tokens; `held` answers no
 * completion until `release`.
 */
export type Trouble =
  | "none"
  | "overloaded"
  | "failing"
  | "breaking"
  | "cut"
  | "no-tokens"
  | "mute-tokens"
  | "held";

/** An engine without a model. */
export class FakeEngine {
  readonly url: string;
  /** Requests for completions that it has answered. */
  answered = 0;
  /** Questions for tokens that it was asked, of either kind. */
  askedForTokens = 0;
  /** Requests for completions whose client went away before the end. */
  abandoned = 0;
  trouble: Trouble = "none";
  /** Headers of the last request for completions. */
  headers: IncomingMessage["headers"] = {};
  readonly #options: FakeEngineOptions;
  readonly #publisher: ZmqEventPublisher;
  readonly #hasher: BlockHasher;
  /** By group, the hashes that it has. */
  readonly #cached: readonly Set<string>[];
  readonly #held: (() => void)[] = [];
  readonly #close: () => Promise<void>;

  private constructor(
    options: FakeEngineOptions,
    publisher: ZmqEventPublisher,
    url: string,
    close: () => Promise<void>,
  ) {
    this.#options = options;
    this.#publisher = publisher;
    this.#hasher = new BlockHasher({ blockSize: options.blockSize, seed: "0" });
    this.#cached = options.slidingWindow === undefined ? [new Set()] : [new Set(), new Set()];
    this.url = url;
    this.#close = close;
  }

  /** Starts one on a free port. */
  static async start(options: FakeEngineOptions): Promise<FakeEngine> {
    const publisher = await ZmqEventPublisher.open({
      endpoint: options.events,
      replayEndpoint: options.replay,
    });
    let engine: FakeEngine | undefined;
    const server = createServer((request, response) => {
      void engine!.#serve(request, response).catch(() => response.destroy());
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const close = async (): Promise<void> => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await publisher.close();
    };
    const { port } = server.address() as AddressInfo;
    engine = new FakeEngine(options, publisher, `http://127.0.0.1:${port}`, close);
    return engine;
  }

  /** Requests for completions that are held back. */
  get held(): number {
    return this.#held.length;
  }

  /** Empties its cache, and says so. */
  async clear(): Promise<void> {
    for (const group of this.#cached) group.clear();
    await this.#publish([{ type: "AllBlocksCleared" }]);
  }

  /** Gives up blocks of a prompt in one group, by their numbers, and says so. */
  async evict(text: string, groupIdx: number, blocks: readonly number[]): Promise<void> {
    const hashes = this.#hasher.hash(tokenize(text));
    const gone = blocks.map((block) => hashes.at(block)!);
    for (const hash of gone) this.#cached[groupIdx]!.delete(nameOf(hash));
    await this.#publish([blockRemoved({ blockHashes: EventHashes.from(gone), medium: "GPU", groupIdx })]);
  }

  /** Answers what it held back. */
  release(): void {
    this.trouble = "none";
    for (const go of this.#held.splice(0)) go();
  }

  async close(): Promise<void> {
    this.release();
    await this.#close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const json = (status: number, value: unknown): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    };
    const { renders = true } = this.#options;
    const [, path, rendered] =
      /^(\/v1\/(?:chat\/)?completions|\/tokenize)(\/render)?$/.exec(request.url?.split("?")[0] ?? "") ?? [];
    if (path === undefined || (rendered && !renders)) return json(404, { error: { message: "not found" } });
    let body: Json;
    try {
      body = (JSON.parse(Buffer.concat(chunks).toString()) as Json | null) ?? {};
    } catch {
      return json(400, { error: { message: "the body is no JSON" } });
    }
    const tokens = tokensOf(body);
    if (rendered || path === "/tokenize") {
      this.askedForTokens++;
      if (this.trouble === "mute-tokens") return;
      if (this.trouble === "no-tokens") return json(500, {});
      if (tokens === undefined) return json(400, { error: { message: "no prompt" } });
      if (!rendered) return json(200, { count: tokens.length, max_model_len: 4096, tokens });
      // For completions there may be several prompts.
      const answer = { token_ids: tokens, features: body["fake_features"] ?? null };
      return json(200, path.includes("chat") ? answer : [answer]);
    }
    return this.#complete(request, response, body, tokens, json);
  }

  async #complete(
    request: IncomingMessage,
    response: ServerResponse,
    body: Json,
    tokens: readonly number[] | undefined,
    json: (status: number, value: unknown) => void,
  ): Promise<void> {
    this.headers = request.headers;
    response.once("close", () => {
      if (!response.writableFinished) this.abandoned++;
    });
    if (this.trouble === "overloaded") return json(503, { error: { message: "overloaded" } });
    if (this.trouble === "failing") return json(500, { error: { message: "failed" } });
    if (this.trouble === "breaking") return void response.destroy();
    if (tokens === undefined) return json(400, { error: { message: "no prompt" } });
    if (this.trouble === "held") await new Promise<void>((resolve) => this.#held.push(resolve));
    const salt = body["cache_salt"];
    const cached = await this.#compute(tokens, typeof salt === "string" ? salt : undefined);
    this.answered++;
    const usage = { prompt_tokens: tokens.length, prompt_tokens_details: { cached_tokens: cached } };
    if (body["stream"] !== true) return json(200, { choices: [{ text: "ok" }], usage });
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const text of ["o", "k"]) response.write(`data: ${JSON.stringify({ choices: [{ text }] })}\n\n`);
    if (this.trouble === "cut") return void setImmediate(() => response.destroy());
    response.end(`data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`);
  }

  /** Fills the cache with a prompt's blocks. @returns tokens that were there already. */
  async #compute(tokens: readonly number[], cacheSalt: string | undefined): Promise<number> {
    const hashes = this.#hasher.hash({
      promptTokenIds: tokens,
      ...(cacheSalt !== undefined && { cacheSalt }),
    });
    const names = Array.from(hashes, nameOf);
    const found = this.#found(names.slice(0, Math.floor((tokens.length - 1) / this.#options.blockSize)));
    const events = this.#cached.flatMap((group, groupIdx) => {
      const first = names.findIndex((name, at) => at >= (groupIdx === 0 ? 0 : found) && !group.has(name));
      if (first < 0) return [];
      for (const name of names.slice(first)) group.add(name);
      return [this.#stored(groupIdx, hashes, first, tokens)];
    });
    if (events.length > 0) await this.#publish(events);
    return found * this.#options.blockSize;
  }

  /** Blocks at the beginning that it has: all of them, and in a sliding window those that the next token looks at. */
  #found(names: readonly string[]): number {
    const { blockSize, slidingWindow } = this.#options;
    const [full, window] = this.#cached;
    const missing = names.findIndex((name) => !full!.has(name));
    let found = missing < 0 ? names.length : missing;
    if (slidingWindow === undefined) return found;
    const seen = Math.ceil((slidingWindow - 1) / blockSize);
    while (!names.slice(Math.max(0, found - seen), found).every((name) => window!.has(name))) found--;
    return found;
  }

  #stored(groupIdx: number, hashes: BlobBlockHashes, from: number, tokens: readonly number[]): KVCacheEvent {
    const { blockSize, slidingWindow } = this.#options;
    return blockStored({
      blockHashes: EventHashes.from(hashes.slice(from)),
      parentBlockHash: from > 0 ? hashes.at(from - 1)! : null,
      tokenIds: Uint32Array.from(tokens.slice(from * blockSize, hashes.length * blockSize)),
      blockSize,
      medium: "GPU",
      groupIdx,
      ...(groupIdx === 0
        ? { kvCacheSpecKind: "full_attention" as const }
        : { kvCacheSpecKind: "sliding_window" as const, kvCacheSpecSlidingWindow: slidingWindow! }),
    });
  }

  async #publish(events: readonly KVCacheEvent[]): Promise<void> {
    await this.#publisher.publish({ ts: Date.now() / 1000, events, dataParallelRank: null });
  }
}

const nameOf = (hash: Uint8Array): string => Buffer.from(hash).toString("hex");
