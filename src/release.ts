export { DEFAULT_RELEASE, RELEASES, type Release } from "../generated/typescript/runtime/releases.js";
