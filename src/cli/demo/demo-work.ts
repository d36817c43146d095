import type { BlockHashKernel } from "../../hash/kernel.js";
import type { KvStore } from "../../store/kv-store.js";

/** Told what comes next. Throws where the demo is to end. */
export type DemoStep = (what: string) => Promise<void>;

/** What both parts of the demo need. */
export interface DemoWork {
  readonly store: KvStore;
  /** What is talked about. */
  readonly tokens: Uint32Array;
  readonly kernel: BlockHashKernel | undefined;
  /** What keeps the keys of this run apart from those of engines, and of other runs. */
  readonly cachePrefix: string;
  readonly step: DemoStep;
}
