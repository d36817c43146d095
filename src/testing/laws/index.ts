export * from "./chunk-laws.js";
export * from "./connector-laws.js";
export * from "./coordinator-laws.js";
export * from "./hash-laws.js";
export * from "./key-laws.js";
export * from "./layout-laws.js";
export * from "./request-laws.js";
export * from "./worker-laws.js";
