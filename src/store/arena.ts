/**
 * Memory with a known address, out of which objects are put and into which they are read. It is registered with the
 * store that made it.
 *
 * It stays until it is closed, as long as its store is open: also when no variable holds it any more, for its addresses may
 * stand in any table of segments.
 */
export interface Arena extends AsyncDisposable {
  /** Absolute address of the first byte: what segment addresses count from. */
  readonly baseAddress: bigint;
  /** The memory itself, zero-filled at first. Empty once the arena is closed. */
  readonly bytes: Uint8Array;
  /** Bytes of the arena; still known after `close`. */
  readonly size: number;
  /** A descriptor that another process can map to see the same bytes; undefined where the platform has none. */
  readonly fileDescriptor: number | undefined;
  /**
   * Unregisters the memory, wherever in this process it is registered, and gives it back; views of it become empty. Calls
   * that use it finish first. Closing twice is fine.
   */
  close(): Promise<void>;
}
