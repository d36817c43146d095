import type { JsonObject, JsonValue } from "../vectors/handler.js";
import { ClientMemory } from "./client-memory.js";
import { CLIENT_OPS } from "./client-ops.js";
import { MANY_OPS } from "./many-ops.js";
import { type ClientOp, type Member, OtherBackendOnly, type StepContext } from "./member.js";
import type { Observed } from "./observed.js";
import { PythonCalls } from "./python-calls.js";
import { READ_OPS } from "./read-ops.js";
import { REMOVE_OPS } from "./remove-ops.js";
import { type ContractSetup, type ContractStep, clientOf, clientSetup } from "./scenario.js";
import type { ContractWorld } from "./world.js";
import { WRITE_OPS } from "./write-ops.js";

const OPS: Readonly<Record<string, ClientOp>> = {
  ...WRITE_OPS,
  ...READ_OPS,
  ...REMOVE_OPS,
  ...CLIENT_OPS,
  ...MANY_OPS,
};

/** Runs the steps of one scenario in a world. */
export class StepRunner {
  readonly #world: ContractWorld;
  readonly #setup: ContractSetup;
  readonly #members = new Map<string, Promise<Member>>();
  readonly #background = new Map<string, Promise<unknown>>();
  readonly #context: StepContext = {
    sleep: (ms) => this.sleep(ms),
    moved: async (bytes) => this.#world.beforeTransfer?.(bytes),
  };
  /** Milliseconds that the steps have let pass. */
  slept = 0;

  constructor(world: ContractWorld, setup: ContractSetup) {
    this.#world = world;
    this.#setup = setup;
  }

  /**
   * Runs a step and says what happened.
   *
   * @throws OtherBackendOnly for one that the world can't do, TypeError for one that nobody knows.
   */
  async run(step: ContractStep): Promise<Observed> {
    const worldly = Object.hasOwn(this.#worldly, step.op) ? this.#worldly[step.op] : undefined;
    if (worldly) return { result: await worldly(step) };
    if (step.op === "poll") return this.#poll(step);
    const run = Object.hasOwn(OPS, step.op) ? OPS[step.op] : undefined;
    if (!run) throw new TypeError(`there is no op ${JSON.stringify(step.op)}`);
    return run(step, await this.#member(clientOf(step)), this.#context);
  }

  /** Runs steps at once; `observed` has theirs, in order. */
  async runParallel(steps: readonly ContractStep[]): Promise<Observed[]> {
    for (const step of steps) await this.#member(clientOf(step));
    return Promise.all(steps.map((step) => this.run(step)));
  }

  async sleep(ms: number): Promise<void> {
    this.slept += ms;
    await this.#world.sleep(ms);
  }

  /** Waits for what runs in the background, whatever its end. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#background.values());
  }

  #member(name: string): Promise<Member> {
    let member = this.#members.get(name);
    if (!member) {
      member = this.#start(name);
      this.#members.set(name, member);
    }
    return member;
  }

  async #start(name: string): Promise<Member> {
    const client = await this.#world.startClient(name);
    const memory = new ClientMemory(client);
    const { register, manual, arena } = clientSetup(this.#setup, name);
    if (register && !manual && arena > 0) memory.registered(client.arena.address, arena);
    return { client, memory, calls: new PythonCalls(client) };
  }

  // ---- steps that speak to no store

  readonly #worldly: Readonly<Record<string, (step: ContractStep) => Promise<JsonObject>>> = {
    sleep: async (step) => {
      await this.sleep(Number(step["ms"]));
      return {};
    },
    new_client: async (step) => {
      const name = clientOf(step);
      await this.#members.get(name);
      this.#members.set(name, this.#start(name));
      await this.#members.get(name);
      return {};
    },
    kill_client: (step) => this.#harm("killClient", step),
    stop_client: (step) => this.#harm("stopClient", step),
    cont_client: (step) => this.#harm("continueClient", step),
    kill_master: (step) => this.#harm("killMaster", step),
    start_master: (step) => this.#harm("startMaster", step),
    stop_master: (step) => this.#harm("stopMaster", step),
    cont_master: (step) => this.#harm("continueMaster", step),
    http: async (step) => {
      if (!this.#world.http) throw new OtherBackendOnly("it has no admin port");
      return { ...(await this.#world.http(String(step["path"]))) };
    },
    segment_used: async () => ({ ...(await this.#world.segments()) }),
    bg: async (step) => {
      const inner = step["step"] as ContractStep;
      await this.#member(clientOf(inner));
      this.#background.set(String(step["name"]), this.run({ c: clientOf(step), ...inner }));
      return { rc: 0 };
    },
  };

  async #harm(act: keyof NonNullable<ContractWorld["processes"]>, step: ContractStep): Promise<JsonObject> {
    const processes = this.#world.processes;
    const method = processes?.[act];
    if (!processes || !method) throw new OtherBackendOnly(`it has no process for ${step.op}`);
    const name = clientOf(step);
    if (act === "killMaster") await processes.killMaster?.(step["sig"] === "SIGTERM" ? "SIGTERM" : "SIGKILL");
    else await (method as (name: string) => Promise<void>).call(processes, name);
    // What ran in a process that is killed never answers.
    if (act === "killClient") this.#members.delete(name);
    return {};
  }

  async #poll(step: ContractStep): Promise<Observed> {
    const inner: ContractStep = { c: clientOf(step), ...(step["step"] as ContractStep) };
    const every = Number(step["every_ms"]);
    const seen: JsonValue[] = [];
    for (let waited = 0; ; waited += every) {
      const observed = await this.run(inner);
      const rc = observed.result["rc"]!;
      if (seen.at(-1) !== rc) seen.push(rc);
      if (rc === step["until"] || waited >= Number(step["max_ms"]))
        return { ...observed, result: { ...observed.result, rc, seen } };
      await this.sleep(every);
    }
  }
}
