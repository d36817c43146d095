import { Registry } from "prom-client";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { MooncakeStoreConnectorStats } from "../../../src/connector/metrics/connector-stats.js";
import { loadPromClient, MooncakeStorePromMetrics } from "../../../src/connector/metrics/prom-metrics.js";

test("prom-client shows the metrics under vLLM's names", async () => {
  const registry = new Registry();
  const client = await loadPromClient();
  const labels = { model_name: "m", engine: "0" };
  const metrics = new MooncakeStorePromMetrics({ client, labels, registers: [registry] });
  const stats = new MooncakeStoreConnectorStats();
  const record = { durationSeconds: 0.02, numKeys: 3, numBytes: 100, numFailedKeys: 1 };
  stats.recordOperation("save_put", { ...record, status: "partial_failure" });
  metrics.observe(stats);
  metrics.observe(null);
  const text = await registry.metrics();
  const shown = '{model_name="m",engine="0",operation="save_put",status="partial_failure"}';
  for (const line of [
    `vllm:mooncake_store_operation_total${shown} 1`,
    `vllm:mooncake_store_operation_keys_total${shown} 3`,
    `vllm:mooncake_store_operation_bytes_total${shown} 100`,
    `vllm:mooncake_store_operation_failed_keys_total${shown} 1`,
    `vllm:mooncake_store_operation_time_seconds_count${shown} 1`,
  ])
    assert.ok(text.includes(line), line);
  assert.match(text, /time_seconds_bucket\{le="0\.05",.*\} 1/);
  assert.match(text, /time_seconds_bucket\{le="0\.01",.*\} 0/);
});

test("a value that the client does not take costs none of the others, and is told", () => {
  const taken: string[] = [];
  class Metric {
    readonly name: string;
    constructor({ name }: { readonly name: string }) {
      this.name = name;
    }
    labels(): { inc(): void; observe(): void } {
      if (this.name.endsWith("operation_total")) throw new Error("wrong labels");
      const take = () => void taken.push(this.name);
      return { inc: take, observe: take };
    }
  }
  const metrics = new MooncakeStorePromMetrics({ client: { Counter: Metric, Histogram: Metric } as never });
  const stats = new MooncakeStoreConnectorStats();
  const record = { durationSeconds: 0, numKeys: 1, numBytes: 1, numFailedKeys: 0, status: "ok" } as const;
  stats.recordOperation("save_put", record);
  metrics.observe(stats);
  assert.is(taken.length, 4);
  assert.is(metrics.refused.count, 1);
  assert.match(String(metrics.refused.lastError), /wrong labels/);
});

test.run();
