// The proxy as a program: in front of the engines of the command line or, without any, in front of two without a model.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { BlockHasher, type HashAlgorithm, type Release } from "mooncake-kv";
import type { KvAwareProxy, ProxiedEngine, ProxyOptions } from "../kv-aware-proxy.js";
import { FakeEngine } from "./fake-engine.js";

type Start = (options: ProxyOptions) => Promise<KvAwareProxy>;

/** Runs the proxy as the command line says. */
export async function serveOrDemonstrate(start: Start): Promise<void> {
  const { values } = parseArgs({
    options: {
      engine: { type: "string", multiple: true, default: [] },
      lora: { type: "string", multiple: true, default: [] },
      "data-parallel-size": { type: "string", default: "1" },
      host: { type: "string", default: "127.0.0.1" },
      port: { type: "string", default: "8000" },
      "block-size": { type: "string", default: "16" },
      release: { type: "string" },
      algorithm: { type: "string", default: "sha256" },
      seed: { type: "string" },
    },
  });
  if (values.engine.length === 0) return demonstrate(start);
  const release = values.release as Release | undefined;
  const hasher = await BlockHasher.create({
    blockSize: Number(values["block-size"]),
    algorithm: values.algorithm as HashAlgorithm,
    seed: values.seed,
    ...(release && { release }),
  });
  const ranks = Number(values["data-parallel-size"]);
  if (!Number.isInteger(ranks) || ranks < 1)
    throw new Error(`--data-parallel-size ${values["data-parallel-size"]} is no number of ranks`);
  const engines = values.engine
    .map((text): ProxiedEngine => ({ ...engineOf(text), index: { release } }))
    .flatMap((engine) => (ranks > 1 ? ranksOf(engine, ranks) : [engine]));
  const adapters = new Map(values.lora.map((text) => pair("--lora", "NAME=PATH", text)));
  const proxy = await start({ engines, hasher, adapters, host: values.host, port: Number(values.port) });
  console.log(`listening at ${proxy.url}, in front of ${engines.map(({ name }) => name).join(", ")}`);
}

function pair(option: string, form: string, text: string): [string, string] {
  const [, name, value] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new Error(`${option} ${text} is not ${form}`);
  return [name, value];
}

function engineOf(text: string): ProxiedEngine {
  const form = "NAME=URL,EVENTS[,REPLAY]";
  const [name, rest] = pair("--engine", form, text);
  const [url, events, replay, ...more] = rest.split(",");
  if (!url || !events || more.length > 0) throw new Error(`--engine ${text} is not ${form}`);
  return { name, url, events, replay };
}

/** Each rank as an engine of its own. */
function ranksOf(engine: ProxiedEngine, ranks: number): ProxiedEngine[] {
  return Array.from({ length: ranks }, (_, dataParallelRank) => ({
    ...engine,
    name: `${engine.name}-dp${dataParallelRank}`,
    dataParallelRank,
  }));
}

/** Two engines without a model, and what the proxy does with four prompts. */
async function demonstrate(start: Start): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "proxy-"));
  const fakes: FakeEngine[] = [];
  const engines: ProxiedEngine[] = [];
  for (const name of ["a", "b"]) {
    const places = { events: `ipc://${folder}/${name}`, replay: `ipc://${folder}/${name}-replay` };
    const fake = await FakeEngine.start({ blockSize: 16, ...places });
    fakes.push(fake);
    engines.push({ name, url: fake.url, ...places });
  }
  const proxy = await start({ engines, hasher: new BlockHasher({ blockSize: 16, seed: "0" }) });
  const ask = async (what: string, content: string): Promise<void> => {
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
  // Events come a moment after the answer.
  while (proxy.index.size < 4) await new Promise((resolve) => setTimeout(resolve, 5));
  await ask("the same again", text("moon"));
  await ask("a longer one", `${text("moon")} ${text("cake")}`);
  await ask("another topic", text("sun"));
  await proxy.close();
  for (const fake of fakes) await fake.close();
  await rm(folder, { recursive: true });
}
