export * from "./coordinator-arbitraries.js";
export * from "./hash-arbitraries.js";
export * from "./key-arbitraries.js";
export * from "./layout-arbitraries.js";
export * from "./wire-arbitraries.js";
