declare const arenaHandle: unique symbol;

/** An arena inside the addon. Opaque; only the copy of the addon that gave it out takes it. */
export interface NativeArena {
  readonly [arenaHandle]: never;
}
