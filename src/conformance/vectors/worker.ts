import { encodeEventBatch } from "../../events/encode-batch.js";
import type { JsonObject, VectorHandlers } from "./handler.js";
import { hex, list, number, object, optionalList, optionalNumber } from "./json.js";
import { asDeviation } from "./worker-deviations.js";
import { callKeys } from "./worker-store.js";
import { syntheticHashes, WorkerTrace } from "./worker-trace.js";

const PUT = "batch_put_from_multi_buffers";

async function runSteps(trace: WorkerTrace, steps: readonly JsonObject[]): Promise<JsonObject[]> {
  const results: JsonObject[] = [];
  for (const step of steps)
    results.push(
      step["event"] === "lookup"
        ? await trace.lookup(
            number(step, "num_tokens"),
            syntheticHashes(optionalNumber(step, "hash_base") ?? 1, number(step, "num_hashes")),
          )
        : await trace.step(step),
    );
  return results;
}

/** The op of worker_store_ops.jsonl, and the one of kv_events.jsonl that is about a worker. */
export const workerHandlers: VectorHandlers = {
  worker: async (input, { recorded }) => {
    const config = object(input, "config");
    const trace = new WorkerTrace(config, optionalList<string>(input, "present") ?? []);
    const init = await trace.init();
    if (init["error"] !== undefined) return { init, steps: [] };
    const steps = list<JsonObject>(input, "steps");
    const actual = { init, steps: await runSteps(trace, steps) };
    return asDeviation(trace, config, steps, recorded.expected, actual) ?? actual;
  },
  worker_events: async (input) => {
    const trace = new WorkerTrace(object(input, "config"), optionalList<string>(input, "present") ?? []);
    await trace.init();
    const steps: JsonObject[] = [];
    for (const step of list<JsonObject>(input, "steps")) {
      const { "?kv_events": events, completed_saves: saves, save_calls: calls } = await trace.step(step);
      steps.push({
        kv_events: events!,
        batch_ts1_dp0: hex(encodeEventBatch({ ts: 1, events: trace.lastEvents, dataParallelRank: 0 })),
        completed_saves: saves!,
        put_keys: (calls as readonly JsonObject[])
          .filter(({ method }) => method === PUT)
          .map((call) => [...callKeys(call, PUT)]),
      });
    }
    return { steps };
  },
};
