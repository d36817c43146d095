// An OpenAI-compatible proxy in front of several engines: each prompt goes to the one that has most of it in its cache. As a
// program without arguments it shows itself with two engines without a model; for real ones see docs/routing.md:
//   node --import tsx examples/kv-aware-proxy.ts --port 8000 --block-size 16 --seed 0
//     --engine a=http://10.0.0.1:8000,tcp://10.0.0.1:5557,tcp://10.0.0.1:6557 --engine b=...
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { pathToFileURL } from "node:url";
import type { BlockHasher } from "mooncake-kv";
import {
  BlockIndex,
  type BlockIndexEngineInit,
  EventSubscriber,
  offsetEndpointPort,
} from "mooncake-kv/events";
import { type EngineState, forTokens, idleEngine, inOrder, isPaused } from "./helpers/engine-choice.js";
import { answer, bodyOf, LONGEST_BODY, mayHaveBroken, passBack, refuse, send } from "./helpers/http-pass.js";
import { PromptReader, type ReadPrompt } from "./helpers/prompt-reader.js";

/** An engine behind the proxy. */
export interface ProxiedEngine {
  readonly name: string;
  /** Its OpenAI-compatible server. */
  readonly url: string;
  /** Endpoints of its KV events; with data parallelism, those of rank 0. */
  readonly events: string;
  readonly replay?: string | undefined;
  /** One rank of an engine with data parallelism: each is followed by itself, and asked for by a header. */
  readonly dataParallelRank?: number | undefined;
  /** What its events don't tell. */
  readonly index?: BlockIndexEngineInit | undefined;
}

/** What a proxy works with. */
export interface ProxyOptions {
  readonly engines: readonly ProxiedEngine[];
  /** Hashes prompts as the engines do. */
  readonly hasher: BlockHasher;
  /** Default: 127.0.0.1, and a free port. */
  readonly host?: string;
  readonly port?: number;
  /** Path of each LoRA adapter by its name, as in `--lora-modules`. Default: none. */
  readonly adapters?: ReadonlyMap<string, string>;
  /** Tokens of a hit that one running request of an engine outweighs. Default: 512. */
  readonly loadPenalty?: number;
  /** Milliseconds for the tokens of a prompt. Default: 1000. */
  readonly tokensTimeoutMs?: number;
  /** Milliseconds that an engine that failed comes last. Default: 5000. */
  readonly pauseMs?: number;
  /** Connections of clients at most; each may bring a body of 16 MiB. Default: 1024. */
  readonly maxConnections?: number;
  /** Told of problems. Default: `console.warn`. */
  readonly log?: (message: string) => void;
}

type Target = ProxiedEngine & EngineState;

/** Where a request goes: engines in the order in which they are tried, and what each has of the prompt. */
interface Route {
  readonly targets: readonly Target[];
  readonly hits: ReadonlyMap<string, number>;
  readonly prompt?: ReadPrompt | undefined;
}

/** A client's request, read. */
interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
  /** Aborted once the client is gone. */
  readonly signal: AbortSignal;
}

/** Answers that say that an engine can't serve just now, so that another one is tried. */
const FAILURES = [500, 502, 503, 504];

/** Engines that one request may break before it is given up. */
const MOST_BROKEN = 2;

/** Paths of requests with prompts, and the same behind `/routing`. */
const PROMPTS = /^(?:\/routing)?(\/v1\/(?:chat\/)?completions)(?:\?|$)/;

/** A proxy that is listening. */
export class KvAwareProxy {
  readonly index: BlockIndex;
  readonly #options: Required<ProxyOptions>;
  readonly #targets: readonly Target[];
  readonly #reader: PromptReader;
  readonly #subscribers = new Map<string, EventSubscriber>();
  readonly #server = createServer((request, response) => void this.#serve(request, response));

  private constructor(options: ProxyOptions) {
    this.#options = {
      host: "127.0.0.1",
      port: 0,
      adapters: new Map(),
      loadPenalty: 512,
      tokensTimeoutMs: 1000,
      pauseMs: 5000,
      maxConnections: 1024,
      log: (message) => console.warn(message),
      ...options,
    };
    const { engines, hasher, adapters, tokensTimeoutMs, maxConnections, log } = this.#options;
    this.index = new BlockIndex({
      blockSize: hasher.blockSize,
      maxEngines: engines.length,
      onProblem: ({ engine, message }) => log(`${engine}: ${message}`),
    });
    this.#reader = new PromptReader(hasher, adapters, tokensTimeoutMs);
    this.#targets = engines.map((engine) => idleEngine(engine));
    this.#server.maxConnections = maxConnections;
    for (const { name, events, replay, dataParallelRank: rank = 0, index = {} } of engines) {
      if (!/^[\w.-]+$/.test(name) || this.#subscribers.has(name))
        throw new Error(`${name}: engines need names of their own, of letters, digits, "_", "." and "-"`);
      this.index.engine(name, index);
      const subscriber = new EventSubscriber({
        endpoint: offsetEndpointPort(events, rank),
        replayEndpoint: replay && offsetEndpointPort(replay, rank),
        onProblem: ({ message }) => log(`${name}: ${message}`),
      });
      this.#subscribers.set(name, subscriber);
    }
  }

  /** Starts listening, and following the engines. */
  static async start(options: ProxyOptions): Promise<KvAwareProxy> {
    const proxy = new KvAwareProxy(options);
    const { host, port } = proxy.#options;
    await new Promise<void>((resolve, reject) => {
      proxy.#server.on("error", reject).listen(port, host, resolve);
    });
    for (const [name, subscriber] of proxy.#subscribers) void proxy.#follow(name, subscriber);
    return proxy;
  }

  get url(): string {
    const { address, family, port } = this.#server.address() as AddressInfo;
    return `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
  }

  async close(): Promise<void> {
    for (const subscriber of this.#subscribers.values()) subscriber.close();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #follow(name: string, subscriber: EventSubscriber): Promise<void> {
    try {
      for await (const message of subscriber) this.index.applyMessage(name, message);
    } catch (error) {
      // What is known of an engine grows wrong once nobody follows it.
      this.index.clear(name);
      this.#options.log(`${name} is not followed any more: ${(error as Error).message}`);
    }
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    // Writing to a client that is gone fails, and that is nothing to end the process for.
    response.once("close", () => gone.abort()).on("error", () => gone.abort());
    try {
      const { method = "GET", url = "", headers } = request;
      // Without dots: what seems to lie under /v1/ must lie there for the engine as well.
      const { pathname, search } = new URL(`http://proxy/${url.replace(/^\/+/, "")}`);
      const path = `${pathname}${search}`;
      const body = await bodyOf(request);
      if (body === undefined) return refuse(response, 413, `the body is longer than ${LONGEST_BODY} bytes`);
      const asked = { method, path, headers, body, signal: gone.signal };
      if (pathname === "/health") return answer(response, 200, { status: "ok" });
      if (/^\/routing(?:\/|$)/.test(pathname)) return answer(response, 200, await this.#explain(asked));
      // Engines have other paths too, to sleep and to be reset: nothing for clients.
      if (!pathname.startsWith("/v1/")) return refuse(response, 404, `there is no ${pathname} here`);
      await this.#forward(asked, await this.#route(asked), response);
    } catch (error) {
      if (gone.signal.aborted) return;
      // No other request may suffer.
      this.#options.log(`a request failed: ${(error as Error).message}`);
      if (response.headersSent) response.destroy();
      else refuse(response, 502, "the request could not be forwarded");
    }
  }

  /** The engines in the order in which they are tried, by what each of them would hit. */
  async #route(asked: Asked): Promise<Route> {
    const prompt = await this.#read(asked);
    // The last token is computed always, since what comes next is made of it.
    const matches = prompt ? this.index.match(prompt.hashes, { maxTokens: prompt.tokens - 1 }) : [];
    const hits = new Map(matches.map(({ engine, tokens }) => [engine, tokens]));
    const hit = ({ name }: Target) => hits.get(name) ?? 0;
    return { targets: inOrder(this.#targets, hit, this.#options.loadPenalty), hits, prompt };
  }

  /** The prompt of a request, with an engine's help; undefined where it has none, or nobody helps. */
  async #read({ method, path, headers, body, signal }: Asked): Promise<ReadPrompt | undefined> {
    const kind = PROMPTS.exec(path)?.[1];
    const target = forTokens(this.#targets);
    if (method !== "POST" || kind === undefined || target === undefined) return undefined;
    try {
      return await this.#reader.read(target.url, { path: kind, body, headers, signal });
    } catch (error) {
      if (!signal.aborted) {
        target.muteUntil = performance.now() + this.#options.pauseMs;
        this.#options.log(`${target.name} gives no tokens: ${(error as Error).message}`);
      }
      return undefined;
    }
  }

  /** Sends a request to the first engine that takes it, and its answer back as it comes. */
  async #forward(asked: Asked, { targets, hits, prompt }: Route, response: ServerResponse): Promise<void> {
    let broken = 0;
    for (const [at, target] of targets.entries()) {
      const { name, url, dataParallelRank: rank } = target;
      const headers =
        rank === undefined ? asked.headers : { ...asked.headers, "x-data-parallel-rank": `${rank}` };
      target.running++;
      target.given++;
      try {
        const reply = await send(url, { ...asked, headers });
        const failed = FAILURES.includes(reply.statusCode!);
        if (failed) this.#failed(target, `it answers ${reply.statusCode}`);
        if (reply.statusCode === 500) broken++;
        if (!failed || broken === MOST_BROKEN || at === targets.length - 1)
          return await passBack(reply, response, {
            "x-routed-to": name,
            ...(prompt && { "x-prefix-hit-tokens": `${hits.get(name) ?? 0}` }),
          });
        reply.destroy();
      } catch (error) {
        if (asked.signal.aborted) throw error;
        this.#failed(target, (error as Error).message);
        if (response.headersSent) throw error;
        if (mayHaveBroken(error) && ++broken === MOST_BROKEN) break;
      } finally {
        target.running--;
      }
    }
    refuse(response, 503, "no engine could serve the request");
  }

  #failed(target: Target, why: string): void {
    target.pausedUntil = performance.now() + this.#options.pauseMs;
    this.#options.log(`${target.name} fails: ${why}`);
  }

  /** How the engines fare; and for a request that is posted, where it would go, and why. */
  async #explain(asked: Asked): Promise<unknown> {
    const { targets, prompt } = await this.#route(asked);
    return {
      tokens: prompt?.tokens ?? null,
      engines: targets.map((target) => ({
        name: target.name,
        running: target.running,
        given: target.given,
        paused: isPaused(target),
        blocks: this.index.blocksOf(target.name),
        ...(prompt && {
          match: this.index.explain(prompt.hashes, target.name, { maxTokens: prompt.tokens - 1 }),
        }),
      })),
      index: { blocks: this.index.size, evicted: this.index.evicted, ...this.index.counters },
      events: Object.fromEntries([...this.#subscribers].map(([name, { counters }]) => [name, counters])),
    };
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { serveOrDemonstrate } = await import("./helpers/proxy-program.js");
  await serveOrDemonstrate((options) => KvAwareProxy.start(options));
}
