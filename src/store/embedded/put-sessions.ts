import type { SegmentTable } from "../../layout/segment-table.js";
import type { Addon, NativeStore } from "../../native/addon.js";
import { checkedPutOptions, type PutOptions } from "../shared/call-options.js";
import { KeyList, type StoreKeys } from "../shared/keys.js";
import { checkedSegments } from "../shared/segments.js";
import { nativePutConfig } from "./native-arguments.js";

/**
 * Puts cut into their parts, on behalf of one client: the way to hold a put between start and end, and to leave one
 * unfinished as a crashed writer does. Mirrors Mooncake's `batch_put_session_start`, `_end` and `_revoke`.
 */
export class PutSessions {
  readonly #addon: Addon;
  readonly #store: NativeStore;
  readonly #client: number;

  constructor(addon: Addon, store: NativeStore, client: number) {
    this.#addon = addon;
    this.#store = store;
    this.#client = client;
  }

  /** Codes: 0; -705 for a key that exists; -600 for one that this client has started already; -200 for no room. */
  start(keys: StoreKeys, sizes: BigUint64Array, options?: PutOptions): Int32Array {
    const { bytes, offsets } = new KeyList(keys).flat;
    const config = nativePutConfig(checkedPutOptions("putSessions.start", options));
    return this.#addon.storeStartPut(this.#store, this.#client, bytes, offsets, sizes, config);
  }

  /**
   * Copies segment i of the table to the offset `targets[i]` of its row's object.
   *
   * Codes: the bytes; -600 for a key that is not started, and for bytes outside the object or the registered regions.
   */
  write(keys: StoreKeys, segments: SegmentTable, targets: BigUint64Array): BigInt64Array {
    const list = new KeyList(keys);
    const { addresses, sizes, rowOffsets } = checkedSegments("putSessions.write", list, segments);
    const { bytes, offsets } = list.flat;
    return this.#addon.storeWritePut(
      this.#store,
      this.#client,
      bytes,
      offsets,
      addresses,
      sizes,
      rowOffsets,
      targets,
    );
  }

  /** Codes: 0; -600 for a key that is not started; -601 when somebody took the key over. */
  end(keys: StoreKeys): Int32Array {
    const { bytes, offsets } = new KeyList(keys).flat;
    return this.#addon.storeEndPut(this.#store, this.#client, bytes, offsets);
  }

  /** Codes as `end`. */
  revoke(keys: StoreKeys): Int32Array {
    const { bytes, offsets } = new KeyList(keys).flat;
    return this.#addon.storeRevokePut(this.#store, this.#client, bytes, offsets);
  }
}
