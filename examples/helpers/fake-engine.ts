// An engine without a model: it answers like vLLM's OpenAI-compatible server, keeps a prefix cache of block hashes, and
// publishes what it stores there, as vLLM does.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type BlobBlockHashes, BlockHasher } from "mooncake-kv";
import { blockStored, EventHashes, type KVCacheEvent, ZmqEventPublisher } from "mooncake-kv/events";

/** What a fake engine is like. */
export interface FakeEngineOptions {
  readonly blockSize: number;
  /** Where it publishes; `ipc://...` is bound. */
  readonly events: string;
  readonly replay: string;
  /** Tokens of the sliding window of a second cache group. Default: none, one group of full attention. */
  readonly slidingWindow?: number;
}

/** Words as token ids: the same word is the same token. */
export function tokenize(text: string): number[] {
  return text
    .split(/\s+/)
    .filter((word) => word !== "")
    .map((word) => [...word].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)!) % 50_000, 7));
}

/** The text of a request for completions, of either kind. */
function promptOf(body: Record<string, unknown>): string {
  if (typeof body["prompt"] === "string") return body["prompt"];
  const messages = (body["messages"] ?? []) as { role: string; content: string }[];
  return messages.map(({ role, content }) => `<${role}> ${content}`).join(" ");
}

/** An engine without a model. */
export class FakeEngine {
  readonly url: string;
  /** Requests for completions that it has answered. */
  answered = 0;
  /** Whether it refuses: `503` answers so, `tokenizer` has no tokenizer, `held` answers nothing until `release`. */
  trouble: "none" | "503" | "tokenizer" | "held" = "none";
  readonly #options: FakeEngineOptions;
  readonly #publisher: ZmqEventPublisher;
  readonly #hasher: BlockHasher;
  readonly #cached = new Set<string>();
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

  /** Empties its cache, and says so. */
  async clear(): Promise<void> {
    this.#cached.clear();
    await this.#publish([{ type: "AllBlocksCleared" }]);
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
    let body: Record<string, unknown>;
    try {
      body =
        chunks.length > 0 ? (JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>) : {};
    } catch {
      return json(400, { error: { message: "the body is no JSON" } });
    }
    if (this.trouble === "503") return json(503, { error: { message: "overloaded" } });
    const tokens = tokenize(promptOf(body));
    if (request.url === "/tokenize")
      return this.trouble === "tokenizer" ? json(404, {}) : json(200, { count: tokens.length, tokens });
    if (!/^\/v1\/(?:chat\/)?completions$/.test(request.url ?? "")) return json(404, {});
    if (this.trouble === "held") await new Promise<void>((resolve) => this.#held.push(resolve));
    const salt = body["cache_salt"];
    const cached = await this.#compute(tokens, typeof salt === "string" ? salt : undefined);
    this.answered++;
    const usage = { prompt_tokens: tokens.length, prompt_tokens_details: { cached_tokens: cached } };
    if (body["stream"] !== true) return json(200, { choices: [{ text: "ok" }], usage });
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const text of ["o", "k"]) response.write(`data: ${JSON.stringify({ choices: [{ text }] })}\n\n`);
    response.end(`data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`);
  }

  /** Fills the cache with a prompt's blocks. @returns tokens that were there already. */
  async #compute(tokens: readonly number[], cacheSalt: string | undefined): Promise<number> {
    const hashes = this.#hasher.hash({
      promptTokenIds: tokens,
      ...(cacheSalt !== undefined && { cacheSalt }),
    });
    const names = [...hashes].map((hash) => Buffer.from(hash).toString("hex"));
    const missing = names.findIndex((name) => !this.#cached.has(name));
    const found = missing < 0 ? names.length : missing;
    for (const name of names) this.#cached.add(name);
    if (found < names.length) await this.#publish(this.#stored(hashes, found, tokens));
    return Math.min(found * this.#options.blockSize, tokens.length - 1);
  }

  #stored(hashes: BlobBlockHashes, from: number, tokens: readonly number[]): KVCacheEvent[] {
    const { blockSize, slidingWindow } = this.#options;
    const event = {
      blockHashes: EventHashes.from(hashes.slice(from)),
      parentBlockHash: from > 0 ? hashes.at(from - 1)! : null,
      tokenIds: Uint32Array.from(tokens.slice(from * blockSize, hashes.length * blockSize)),
      blockSize,
      medium: "GPU",
    };
    const groups = [blockStored({ ...event, groupIdx: 0, kvCacheSpecKind: "full_attention" })];
    if (slidingWindow !== undefined)
      groups.push(
        blockStored({
          ...event,
          groupIdx: 1,
          kvCacheSpecKind: "sliding_window",
          kvCacheSpecSlidingWindow: slidingWindow,
        }),
      );
    return groups;
  }

  async #publish(events: readonly KVCacheEvent[]): Promise<void> {
    await this.#publisher.publish({ ts: Date.now() / 1000, events, dataParallelRank: null });
  }
}
