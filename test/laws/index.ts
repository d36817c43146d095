export * from "./chunk-laws.js";
export * from "./hash-arbitraries.js";
export * from "./hash-laws.js";
export * from "./key-arbitraries.js";
export * from "./key-laws.js";
export * from "./layout-arbitraries.js";
export * from "./layout-laws.js";
export * from "./request-laws.js";
