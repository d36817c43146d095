/**
 * The contract suite: replays what the real Mooncake answered against any backend.
 */
export { embeddedBackend } from "./embedded-world.js";
export type { Improvement } from "./expectation.js";
export { fillPattern, pattern } from "./pattern.js";
export {
  type ContractReport,
  type ContractSkip,
  isContractFile,
  runContractFile,
  runContractLines,
  runScenario,
  type ScenarioOutcome,
} from "./runner.js";
export {
  type ContractClientSetup,
  type ContractScenario,
  type ContractSetup,
  type ContractStep,
  clientSetup,
  parseScenario,
} from "./scenario.js";
export type {
  ContractBackend,
  ContractBuffer,
  ContractClient,
  ContractProcesses,
  ContractPutSessions,
  ContractWorld,
  SetupArguments,
} from "./world.js";
