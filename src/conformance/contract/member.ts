import type { ClientMemory } from "./client-memory.js";
import type { Observed } from "./observed.js";
import type { PythonCalls } from "./python-calls.js";
import type { ContractStep } from "./scenario.js";
import type { ContractClient } from "./world.js";

/** A client of a scenario with all that the suite keeps about it. */
export interface Member {
  readonly client: ContractClient;
  readonly memory: ClientMemory;
  readonly calls: PythonCalls;
}

/** What an op may ask of the world. */
export interface StepContext {
  sleep(ms: number): Promise<void>;
  /** Says that so many bytes are about to be written. */
  moved(bytes: number): Promise<void>;
}

/** One op that speaks to a client. */
export type ClientOp = (step: ContractStep, member: Member, context: StepContext) => Promise<Observed>;

/** Thrown for a step that the world has no means for. */
export class OtherBackendOnly extends Error {}
