import { randomBytes } from "node:crypto";
import { CODE, type KvStore, storeCode } from "../../store/index.js";
import { type Finding, missing, ok } from "./finding.js";

/** Bytes of the value that goes there and back. */
const VALUE_BYTES = 100_000;

/**
 * Puts one object into a pool, says where it lay, reads it back and removes it. The store gives no memory itself, so that
 * what is found is the pool's.
 */
export async function* roundTrip(store: KvStore): AsyncGenerator<Finding> {
  const key = `mooncake-kv:doctor:${randomBytes(12).toString("hex")}`;
  const value = new Uint8Array(randomBytes(VALUE_BYTES));
  const put = (await store.put([key], [value])).codes[0]!;
  if (put === CODE.NO_AVAILABLE_HANDLE) {
    yield missing(
      "segment",
      true,
      `no process gives memory to this cluster, or all of it is full: a put of ${VALUE_BYTES} bytes finds no room (code ${put})`,
      [
        "Start a process that gives memory: mooncake_client --host=HOST --global_segment_size=4GB, or an engine whose configuration has global_segment_size",
        "There is memory? Then it is full of objects that can't be evicted: wait for their leases to end",
      ],
    );
    return;
  }
  if (put !== CODE.OK) {
    yield missing("segment", true, `a put fails with ${codeText(put)}`, [
      "The owner of the memory must be reachable from here: names and ports of its host (12300-14300, 15000-17000) as it announces them",
    ]);
    return;
  }
  const { replicas } = await store.replicas([key]);
  const places = (replicas[0] ?? []).map(({ segment }) => segment).filter((segment) => segment !== "");
  yield ok("segment", `the object lay at ${places.join(", ") || "a place without a name"}`);
  const { codes, values } = await store.get([key]);
  const equal = values[0] !== undefined && Buffer.from(values[0]).equals(value);
  await store.remove([key], { force: true });
  if (equal) yield ok("round trip", `${VALUE_BYTES} bytes put, read back equal, removed`);
  else
    yield missing(
      "round trip",
      true,
      codes[0]! < 0n
        ? `reading back fails with ${codeText(Number(codes[0]))}`
        : "other bytes came back than were put",
      ["Read what Mooncake logged: mooncake-kv doctor --log"],
    );
}

function codeText(code: number): string {
  const { name, meaning } = storeCode(code);
  return `${name} (${code}: ${meaning})`;
}
