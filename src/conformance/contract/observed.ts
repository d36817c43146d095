import type { JsonObject } from "../vectors/handler.js";

/** What a step did: its results as the file would write them, and which keys it touched how. */
export interface Observed {
  readonly result: JsonObject;
  readonly writes?: readonly Written[] | undefined;
  readonly reads?: readonly Read[] | undefined;
  readonly removes?: readonly Removed[] | undefined;
  readonly sweep?: Sweep | undefined;
}

/** One object of a writing call, in the order of the call. */
export interface Written {
  readonly key: Uint8Array;
  readonly size: number;
  readonly upsert: boolean;
  /** Whether a byte of the source lies outside the registered memory. */
  readonly foreign: boolean;
  /** SHA-256 of the source, where it is known. */
  readonly data: (() => string) | undefined;
  readonly code: number;
}

/** One key of a reading call. */
export interface Read {
  readonly key: Uint8Array;
  readonly kind: "into" | "value" | "size" | "exists" | "replicas";
  /** Bytes of the destination, for `into`. */
  readonly capacity: number;
  /** Whether a destination larger than the object is an error. */
  readonly exact: boolean;
  readonly foreign: boolean;
  /** Whether the destination can be looked at. */
  readonly visible: boolean;
}

/** One key of a removing call. */
export interface Removed {
  readonly key: Uint8Array;
  readonly force: boolean;
  readonly code: number;
}

/** A call that removes many. */
export interface Sweep {
  readonly force: boolean;
  /** Undefined: all keys. */
  readonly pattern: string | undefined;
}
