import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { BlockHasher } from "mooncake-kv";
import * as assert from "uvu/assert";
import { FakeEngine, type FakeEngineOptions } from "../../examples/helpers/fake-engine.js";
import { KvAwareProxy, type ProxiedEngine, type ProxyOptions } from "../../examples/kv-aware-proxy.js";
import { type SocketSuite, socketSuite } from "../helpers/socket-suite.js";

// What tests of the proxy example have in common.

/** Hashes prompts as the fake engines do. */
export const hasher: BlockHasher = new BlockHasher({ blockSize: 16, seed: "0" });

/** A proxy, and what it has logged. */
export interface Proxied {
  readonly proxy: KvAwareProxy;
  readonly log: readonly string[];
}

/** Tests of a proxy in front of engines without a model. */
export interface ProxySuite extends SocketSuite {
  /** Endpoints of an engine's events. */
  places(name: string): { readonly events: string; readonly replay: string };
  startProxy(options: Partial<ProxyOptions>): Promise<Proxied>;
  /** Engines named a, b, ... and a proxy in front of them. Default: two, with full attention. */
  start(
    shapes?: readonly Partial<FakeEngineOptions>[],
    options?: Partial<ProxyOptions>,
  ): Promise<Proxied & { readonly engines: readonly FakeEngine[] }>;
}

/** A suite of tests of a proxy; everything is closed after each. */
export function proxySuite(name: string): ProxySuite {
  const suite = socketSuite(name);
  const { folder, keep } = suite;
  const places = (name: string) => ({
    events: `ipc://${folder()}/${name}`,
    replay: `ipc://${folder()}/${name}-replay`,
  });
  const startProxy = async (options: Partial<ProxyOptions>) => {
    const log: string[] = [];
    const proxy = await KvAwareProxy.start({
      engines: [],
      hasher,
      log: (message) => log.push(message),
      ...options,
    });
    return { proxy: keep(proxy), log };
  };
  const start: ProxySuite["start"] = async (shapes = [{}, {}], options = {}) => {
    const engines: FakeEngine[] = [];
    const proxied: ProxiedEngine[] = [];
    for (const [at, shape] of shapes.entries()) {
      const name = String.fromCodePoint(97 + at);
      const engine = await FakeEngine.start({ blockSize: 16, ...places(name), ...shape });
      engines.push(keep(engine));
      proxied.push({ name, url: engine.url, ...places(name) });
    }
    return { engines, ...(await startProxy({ engines: proxied, ...options })) };
  };
  return { ...suite, places, startProxy, start };
}

/** A prompt of as many tokens. */
export const words = (topic: string, count = 65): string =>
  Array.from({ length: count }, (_, at) => `${topic}${at}`).join(" ");

/** Asks for a completion. */
export async function ask(proxy: KvAwareProxy, prompt: unknown, more: object = {}): Promise<Response> {
  return fetch(`${proxy.url}/v1/completions`, {
    method: "POST",
    body: JSON.stringify({ model: "none", prompt, ...more }),
  });
}

/** Which engine answered a prompt, and how many tokens of it were expected there and found. */
export async function routed(proxy: KvAwareProxy, prompt: unknown, more: object = {}): Promise<string> {
  const reply = await ask(proxy, prompt, more);
  assert.is(reply.status, 200);
  const { usage } = (await reply.json()) as { usage: { prompt_tokens_details: { cached_tokens: number } } };
  const expected = reply.headers.get("x-prefix-hit-tokens");
  return `${reply.headers.get("x-routed-to")} ${expected} ${usage.prompt_tokens_details.cached_tokens}`;
}

/** The same of an answer that is not read. */
export const summary = ({ status, headers }: Response): string =>
  `${status} ${headers.get("x-routed-to")} ${headers.get("x-prefix-hit-tokens")}`;

/** A request as `fetch` would not send it. */
export function raw(
  proxy: KvAwareProxy,
  options: RequestOptions,
  body: string | Buffer = "",
): Promise<{ status: number; headers: IncomingMessage["headers"]; text: string }> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(proxy.url, options, async (reply) => {
      let text = "";
      for await (const chunk of reply) text += chunk;
      resolve({ status: reply.statusCode!, headers: reply.headers, text });
    });
    request.on("error", reject).end(body);
  });
}

/** Resolves once something has come about. */
export async function until(condition: () => boolean): Promise<void> {
  for (let turn = 0; !condition(); turn++) {
    assert.ok(turn < 2000, "it does not come about");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
