/**
 * The raw addon: its loader and its typings. Importing this module loads nothing; the first call does.
 */
export type { Addon, CreatedArena, NativeArena, NativeStore, NativeStoreStats } from "./addon.js";
export {
  type BlockHashInput,
  type NativeBlockHashKernel,
  nativeBlockHashKernel,
} from "./block-hash-kernel.js";
export { loadNative, nativeAvailable } from "./load.js";
