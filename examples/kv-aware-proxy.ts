// An OpenAI-compatible proxy in front of several engines: each prompt goes to the one that has most of it in its cache. As a
// program without arguments it shows itself with two engines without a model; for real ones see docs/routing.md:
//   node --import tsx examples/kv-aware-proxy.ts --port 8000 --block-size 16 --seed 0
//     --engine a=http://10.0.0.1:8000,tcp://10.0.0.1:5557,tcp://10.0.0.1:5558 --engine b=...
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { BlockHasher } from "mooncake-kv";
import { BlockIndex, type BlockIndexEngineInit, EventSubscriber } from "mooncake-kv/events";
import { FakeEngine } from "./helpers/fake-engine.js";

/** An engine behind the proxy. */
export interface ProxiedEngine {
  readonly name: string;
  /** Its OpenAI-compatible server. */
  readonly url: string;
  /** Endpoints of its KV events. */
  readonly events: string;
  readonly replay?: string | undefined;
  /** What its events don't tell. */
  readonly index?: BlockIndexEngineInit | undefined;
}

/** What a proxy works with. */
export interface ProxyOptions {
  readonly engines: readonly ProxiedEngine[];
  /** Hashes prompts as the engines do. */
  readonly hasher: BlockHasher;
  readonly port?: number;
  /** Tokens of a hit that one running request of an engine outweighs. Default: 512. */
  readonly loadPenalty?: number;
  /** Milliseconds for the tokens of a prompt; without them the request goes to the engine with least to do. Default: 1000. */
  readonly tokenizeTimeoutMs?: number;
  /** Milliseconds that an engine is left alone after it could not be reached. Default: 5000. */
  readonly pauseMs?: number;
  /** Told of problems. Default: `console.warn`. */
  readonly log?: (message: string) => void;
}

/** Bytes of a request's body. */
const LONGEST_BODY = 16 << 20;

/** Members of a request for a chat that change its tokens, by vLLM's names. */
const CHAT_MEMBERS = [
  "model",
  "messages",
  "tools",
  "chat_template",
  "chat_template_kwargs",
  "add_generation_prompt",
];

/** An engine, and how it fares. */
interface Target extends ProxiedEngine {
  running: number;
  /** Requests that it has been given so far. */
  given: number;
  /** Until when it is left alone, as `performance.now` says. */
  pausedUntil: number;
}

/** Where a request goes: engines in the order in which they are tried, and what each has of the prompt. */
interface Route {
  readonly targets: readonly Target[];
  readonly hits: ReadonlyMap<string, number>;
}

/** A proxy that is listening. */
export class KvAwareProxy {
  readonly index: BlockIndex;
  readonly #options: Required<ProxyOptions>;
  readonly #targets: readonly Target[];
  readonly #subscribers: EventSubscriber[] = [];
  readonly #server = createServer((request, response) => void this.#serve(request, response));

  private constructor(options: ProxyOptions) {
    this.#options = {
      port: 0,
      loadPenalty: 512,
      tokenizeTimeoutMs: 1000,
      pauseMs: 5000,
      log: (message) => console.warn(message),
      ...options,
    };
    const { engines, hasher, log } = this.#options;
    this.index = new BlockIndex({
      blockSize: hasher.blockSize,
      maxEngines: engines.length,
      onProblem: ({ engine, message }) => log(`${engine}: ${message}`),
    });
    this.#targets = engines.map((engine) => ({ ...engine, running: 0, given: 0, pausedUntil: 0 }));
  }

  /** Starts listening, and following the engines. */
  static async start(options: ProxyOptions): Promise<KvAwareProxy> {
    const proxy = new KvAwareProxy(options);
    for (const engine of options.engines) proxy.#follow(engine);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once("error", reject).listen(proxy.#options.port, "127.0.0.1", resolve);
    });
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    for (const subscriber of this.#subscribers) subscriber.close();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #follow({ name, events, replay, index = {} }: ProxiedEngine): void {
    this.index.engine(name, index);
    const subscriber = new EventSubscriber({
      endpoint: events,
      replayEndpoint: replay,
      onProblem: ({ message }) => this.#options.log(`${name}: ${message}`),
    });
    this.#subscribers.push(subscriber);
    void (async () => {
      for await (const message of subscriber) this.index.applyMessage(name, message);
    })().catch((error: Error) => this.#options.log(`${name} is not followed any more: ${error.message}`));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      if (request.url === "/health")
        return answer(response, 200, { engines: this.#targets.map(({ name }) => name) });
      const body = await bodyOf(request);
      if (body === undefined) {
        // What is left of it is not read, so that nothing else can come over this connection.
        response.setHeader("connection", "close");
        return answer(response, 413, problem(`the body is longer than ${LONGEST_BODY} bytes`));
      }
      const prompt = request.method === "POST" && /^\/v1\/(?:chat\/)?completions$/.test(request.url ?? "");
      await this.#forward(request, body, prompt ? await this.#route(body) : this.#leastBusy(), response);
    } catch (error) {
      // The other side is gone, or everything else that is nobody's fault here: no other request may suffer.
      this.#options.log(`a request failed: ${(error as Error).message}`);
      if (!response.headersSent) answer(response, 502, problem("the request could not be forwarded"));
      else response.destroy();
    }
  }

  /** The engines by what they have of the prompt, less what they have to do. */
  async #route(body: Buffer): Promise<Route> {
    const fallback = this.#leastBusy();
    const tokens = await this.#tokens(body, fallback.targets);
    if (tokens === undefined || tokens.tokens.length === 0) return fallback;
    const hashes = this.#options.hasher.hash({
      promptTokenIds: tokens.tokens,
      ...(tokens.cacheSalt !== undefined && { cacheSalt: tokens.cacheSalt }),
    });
    const matches = this.index.match(hashes, { maxTokens: tokens.tokens.length - 1 });
    const hits = new Map(matches.map(({ engine, tokens: hit }) => [engine, hit]));
    const worth = ({ name, running }: Target) => (hits.get(name) ?? 0) - running * this.#options.loadPenalty;
    return { targets: fallback.targets.toSorted((a, b) => worth(b) - worth(a)), hits };
  }

  /** All engines, those with least to do first; those that could not be reached last. */
  #leastBusy(): Route {
    const now = performance.now();
    const paused = ({ pausedUntil }: Target) => (pausedUntil > now ? 1 : 0);
    const targets = this.#targets.toSorted(
      (a, b) => paused(a) - paused(b) || a.running - b.running || a.given - b.given,
    );
    const up = targets.filter((target) => !paused(target));
    return { targets: up.length > 0 ? up : targets, hits: new Map() };
  }

  /** The tokens of a prompt, as an engine's own tokenizer and chat template make them; undefined where they can't be had. */
  async #tokens(
    body: Buffer,
    targets: readonly Target[],
  ): Promise<{ tokens: number[]; cacheSalt: string | undefined } | undefined> {
    try {
      const asked = JSON.parse(body.toString()) as Record<string, unknown>;
      const cacheSalt = typeof asked["cache_salt"] === "string" ? asked["cache_salt"] : undefined;
      const { prompt } = asked;
      if (Array.isArray(prompt) && prompt.every(Number.isSafeInteger)) return { tokens: prompt, cacheSalt };
      const chat = CHAT_MEMBERS.filter((member) => asked[member] !== undefined);
      const question =
        typeof prompt === "string"
          ? { model: asked["model"], prompt }
          : Object.fromEntries(chat.map((member) => [member, asked[member]]));
      const response = await fetch(`${targets[0]!.url}/tokenize`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(question),
        signal: AbortSignal.timeout(this.#options.tokenizeTimeoutMs),
      });
      const { tokens } = (await response.json()) as { tokens?: unknown };
      const known =
        Array.isArray(tokens) && tokens.every((token) => Number.isSafeInteger(token) && token >= 0);
      return known ? { tokens: tokens as number[], cacheSalt } : undefined;
    } catch {
      // What is wrong with the request the engine will say; without tokens it goes to any.
      return undefined;
    }
  }

  /** Sends a request to the first engine that takes it, and its answer back as it comes. */
  async #forward(
    request: IncomingMessage,
    body: Buffer,
    { targets, hits }: Route,
    response: ServerResponse,
  ): Promise<void> {
    for (const [at, target] of targets.entries()) {
      target.running++;
      target.given++;
      try {
        const reply = await send(target, request, body, response);
        const last = at === targets.length - 1;
        if (reply.statusCode === 503 && !last) {
          reply.resume();
          target.pausedUntil = performance.now() + this.#options.pauseMs;
          continue;
        }
        response.writeHead(reply.statusCode ?? 502, {
          ...endToEnd(reply.headers),
          "x-routed-to": target.name,
          "x-prefix-hit-tokens": String(hits.get(target.name) ?? 0),
        });
        await pipeline(reply, response);
        return;
      } catch (error) {
        if (response.headersSent || response.destroyed) throw error;
        target.pausedUntil = performance.now() + this.#options.pauseMs;
        this.#options.log(`${target.name} could not be reached: ${(error as Error).message}`);
      } finally {
        target.running--;
      }
    }
    answer(response, 503, problem("no engine could be reached"));
  }
}

/** Sends a request to an engine. Ends it when the client goes away. @returns the beginning of the answer. */
function send(
  { url }: Target,
  { method = "GET", url: path, headers }: IncomingMessage,
  body: Buffer,
  response: ServerResponse,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(
      new URL(path ?? "/", url),
      { method, headers: { ...endToEnd(headers), "content-length": body.length } },
      resolve,
    );
    const stop = (): void => void outgoing.destroy(new Error("the client is gone"));
    response.once("close", stop);
    outgoing.once("error", reject).once("close", () => response.off("close", stop));
    outgoing.end(body);
  });
}

/** Headers that are meant for the other end, not for the next hop. */
function endToEnd(headers: IncomingMessage["headers"]): IncomingMessage["headers"] {
  const {
    connection,
    host,
    "keep-alive": _,
    "transfer-encoding": __,
    "content-length": ___,
    ...rest
  } = headers;
  return rest;
}

async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > LONGEST_BODY) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function answer(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

const problem = (message: string) => ({ error: { message, type: "proxy_error" } });

/** Two engines without a model, and what the proxy does with four prompts. */
async function demonstrate(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "proxy-"));
  const places = (name: string) => ({
    events: `ipc://${folder}/${name}`,
    replay: `ipc://${folder}/${name}-replay`,
  });
  const engines = [];
  for (const name of ["a", "b"])
    engines.push({ name, fake: await FakeEngine.start({ blockSize: 16, ...places(name) }), ...places(name) });
  const proxy = await KvAwareProxy.start({
    engines: engines.map(({ fake, ...engine }) => ({ ...engine, url: fake.url })),
    hasher: new BlockHasher({ blockSize: 16, seed: "0" }),
  });
  const ask = async (what: string, content: string) => {
    const reply = await fetch(`${proxy.url}/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify({ model: "none", messages: [{ role: "user", content }] }),
    });
    const { usage } = (await reply.json()) as {
      usage: { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number } };
    };
    const { headers } = reply;
    console.log(
      `${what}: engine ${headers.get("x-routed-to")}, ${headers.get("x-prefix-hit-tokens")} of ${usage.prompt_tokens} tokens ` +
        `expected, ${usage.prompt_tokens_details.cached_tokens} found`,
    );
  };
  const text = (topic: string) => Array.from({ length: 64 }, (_, at) => `${topic}${at}`).join(" ");
  await ask("a first prompt", text("moon"));
  await untilIndexed(proxy.index, 4);
  await ask("the same again", text("moon"));
  await ask("a longer one", `${text("moon")} ${text("cake")}`);
  await ask("another topic", text("sun"));
  await proxy.close();
  for (const { fake } of engines) await fake.close();
  await rm(folder, { recursive: true });
}

/** Resolves once the index has that many blocks: events come a moment after the answer. */
async function untilIndexed(index: BlockIndex, blocks: number): Promise<void> {
  while (index.size < blocks) await new Promise((resolve) => setTimeout(resolve, 5));
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      engine: { type: "string", multiple: true, default: [] },
      port: { type: "string", default: "8000" },
      "block-size": { type: "string", default: "16" },
      seed: { type: "string" },
      algorithm: { type: "string", default: "sha256" },
    },
  });
  if (values.engine.length === 0) return demonstrate();
  const engines = values.engine.map((text) => {
    const [, name, url, events, replay] = /^([^=]+)=([^,]+),([^,]+)(?:,([^,]+))?$/.exec(text) ?? [];
    if (events === undefined) throw new Error(`--engine ${text} is not NAME=URL,EVENTS[,REPLAY]`);
    return { name: name!, url: url!, events, replay };
  });
  const hasher = await BlockHasher.create({
    blockSize: Number(values["block-size"]),
    algorithm: values.algorithm as "sha256",
    seed: values.seed,
  });
  const proxy = await KvAwareProxy.start({ engines, hasher, port: Number(values.port) });
  console.log(`listening at ${proxy.url}, in front of ${engines.map(({ name }) => name).join(", ")}`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main();
