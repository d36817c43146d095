import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { MooncakeCluster } from "../../src/conformance/contract/mooncake/cluster.js";
import { findMooncake, PYTHON } from "../helpers/mooncake-wheel.js";
import { childrenOf, holdings } from "../store/mooncake/setup.js";
import { EPOCH, MASTER_IS_GONE, type WorkerNews, type WorkerOrder, type WorkerReport } from "./settings.js";

// npm run torture -- embedded|mooncake [--seconds 60] [--seed N]
//
// Two threads put and read values, many calls at a time, and compare every byte, while sidecars are killed and stopped and
// the master is started again. Ends with 0 only if no byte was wrong, no acknowledged value was lost, no call was late, and
// nothing is left of processes, descriptors and shared memory.

const words = process.argv.slice(2);
const option = (name: string, otherwise: number): number => {
  const at = words.indexOf(`--${name}`);
  const value = at < 0 ? otherwise : Number(words[at + 1]);
  if (Number.isInteger(value) && value > 0) return value;
  console.error(`torture: --${name} is ${words[at + 1]}; it is a whole number of at least 1`);
  process.exit(2);
};
const backend = words[0];
const seconds = option("seconds", 60);
const seed = option("seed", 20261129);
if (backend !== "embedded" && backend !== "mooncake") {
  console.error(`torture: ${backend ?? "nothing"} is no backend to torture; say embedded or mooncake`);
  process.exit(2);
}

const shared = new SharedArrayBuffer(8);
const flags = new Int32Array(shared);

interface Tortured {
  readonly report: Promise<WorkerReport>;
  sidecarPid: number | undefined;
}

function start(order: WorkerOrder): Tortured {
  // A thread of Node 20 does not take over the loader of TypeScript.
  const script = `
    import { register } from ${JSON.stringify(import.meta.resolve("tsx/esm/api"))};
    register();
    await import(${JSON.stringify(new URL("./worker.ts", import.meta.url).href)});`;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(script)}`), {
    workerData: { order, shared },
    execArgv: [],
  });
  const tortured: Tortured = {
    sidecarPid: undefined,
    report: new Promise((resolve, reject) => {
      worker.on("message", (message: WorkerNews | WorkerReport) => {
        if ("calls" in message) resolve(message);
        else tortured.sidecarPid = message.sidecarPid;
      });
      worker.on("error", reject);
      worker.on("exit", (code) => reject(new Error(`a worker ended with ${code} and no report`)));
    }),
  };
  return tortured;
}

let state = seed;
function below(limit: number): number {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % limit;
}

const done = { killed: 0, stopped: 0, masterStarts: 0 };

/** Does harm until the workers are through. */
async function harm(cluster: MooncakeCluster, victims: readonly Tortured[], end: number): Promise<void> {
  // Opening needs a master.
  while (victims.some(({ sidecarPid }) => sidecarPid === undefined) && performance.now() < end)
    await sleep(50);
  while (performance.now() < end) {
    await sleep(300 + below(900));
    const { sidecarPid } = victims[below(victims.length)]!;
    const what = below(8);
    if (what === 0) await restartMaster(cluster);
    else if (sidecarPid === undefined) continue;
    else if (what <= 4) {
      done.killed++;
      signal(sidecarPid, "SIGKILL");
    } else {
      done.stopped++;
      signal(sidecarPid, "SIGSTOP");
      // At times longer than a sidecar may be silent.
      await sleep(what === 7 ? 7_000 : 100 + below(1_500));
      signal(sidecarPid, "SIGCONT");
    }
  }
}

async function restartMaster(cluster: MooncakeCluster): Promise<void> {
  done.masterStarts++;
  Atomics.store(flags, MASTER_IS_GONE, 1);
  await cluster.kill("master");
  await sleep(below(800));
  await cluster.startMaster();
  Atomics.add(flags, EPOCH, 1);
  // The owner mounts its segment again within about a second.
  await sleep(1_500);
  Atomics.store(flags, MASTER_IS_GONE, 0);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It is gone already.
  }
}

async function torture(): Promise<boolean> {
  const installation = backend === "mooncake" ? findMooncake() : undefined;
  if (backend === "mooncake" && !installation) throw new Error("the real Mooncake is not here");
  const before = holdings();
  const cluster = installation && (await MooncakeCluster.start(installation, { segmentBytes: 768 << 20 }));
  const milliseconds = seconds * 1_000;
  const end = performance.now() + milliseconds;
  const store: WorkerOrder["store"] = cluster
    ? { backend: "mooncake", master: cluster.masterAddress, python: PYTHON, staging: "16MiB" }
    : { backend: "embedded", capacity: "512MiB", defaultKvLeaseTtl: 60_000 };
  const workers = [0, 1].map((index) =>
    start({ store, name: `${process.pid}.${index}`, seed: seed + index, milliseconds }),
  );
  const harmed = cluster ? harm(cluster, workers, end) : Promise.resolve();
  const reports = await Promise.all(workers.map(({ report }) => report));
  await harmed;
  await cluster?.[Symbol.asyncDispose]();
  const left = await leftovers(before);
  return verdict(reports, left);
}

/** What this process still holds that it did not hold before. */
async function leftovers(before: ReturnType<typeof holdings>): Promise<string[]> {
  for (let wait = 0; wait < 50; wait++) {
    const now = holdings();
    const left = (Object.keys(before) as (keyof typeof before)[])
      .filter((name) => now[name] > before[name])
      .map((name) => `${name}: ${now[name]}, before ${before[name]}`);
    if (left.length === 0) return [];
    await sleep(100);
    if (wait === 49) return [...left, `children ${childrenOf(process.pid).join(", ")}`];
  }
  return [];
}

function verdict(reports: readonly WorkerReport[], left: readonly string[]): boolean {
  const sum = (name: "calls" | "good" | "compared" | "brokenDown" | "inVain" | "restarts"): number =>
    reports.reduce((total, report) => total + report[name], 0);
  const all = (name: "wrong" | "lost" | "late" | "odd"): string[] =>
    reports.flatMap((report) => report[name]);
  console.log(
    `${backend}: ${seconds} s, seed ${seed}: ${sum("calls")} calls, ${sum("good")} good, ${(sum("compared") / 1e6).toFixed(0)} MB compared; ` +
      `${sum("inVain")} without an answer in time, ${sum("brokenDown")} broken down; ` +
      `sidecars killed ${done.killed}, stopped ${done.stopped}, replaced ${sum("restarts")}; master started again ${done.masterStarts} times; ` +
      `at most ${Math.max(...reports.map(({ latest }) => latest)).toFixed(0)} ms beyond a deadline`,
  );
  const findings = {
    "wrong bytes": all("wrong"),
    "acknowledged values lost": all("lost"),
    "calls later than deadline + 100 ms": all("late"),
    "odd answers": all("odd"),
    "left behind": left,
  };
  for (const [what, list] of Object.entries(findings)) {
    console.log(`${list.length} ${what}`);
    for (const line of list.slice(0, 10)) console.log(`  ${line}`);
  }
  const failed =
    Object.values(findings).filter((list) => list.length > 0).length + (sum("good") === 0 ? 1 : 0);
  console.log(`${5 - Math.min(5, failed)} passed, ${failed} failed`);
  return failed === 0;
}

process.exitCode = (await torture()) ? 0 : 1;
