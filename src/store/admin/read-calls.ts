import { constants } from "node:buffer";
import type { SegmentTable } from "../../layout/segment-table.js";
import type { KeyList } from "../keys.js";
import { keyBytes, notForKeyQuery } from "./carried-keys.js";
import type { Deadline } from "./deadline.js";
import { AdminFailure, adminFailure, deadlinePassed } from "./failure.js";
import { inLanes } from "./in-lanes.js";
import { type Destination, type ReadContext, readUnderLease } from "./leased-read.js";
import { holdPlaces, type MemoryMap, type Place, releasePlaces } from "./memory-map.js";
import type { Outcomes } from "./outcomes.js";
import { Scatter } from "./scatter.js";

const INVALID_PARAMS = -600;
const OBJECT_NOT_FOUND = -704;
const TRANSFER_FAIL = -800;

/** One destination of an object. */
interface Row {
  readonly index: number;
  readonly places: readonly Place[];
  readonly bytes: bigint;
  /** Why it can't be written; an object that can't be read either has its own code. */
  readonly refusal: AdminFailure | undefined;
}

/** An object that a call reads, and the positions in the call that want it. */
interface Wanted<T> {
  readonly key: Uint8Array;
  readonly by: T[];
}

/** Spreads every object over the places of its rows; an object that several rows want is read once. */
export async function readInto(
  context: ReadContext,
  keys: KeyList,
  segments: SegmentTable,
  memory: MemoryMap,
  lanes: number,
  outcomes: Outcomes,
  deadline: Deadline,
): Promise<void> {
  const wanted = group(keys, outcomes, (index) => rowOf(segments, index, memory));
  const places = wanted.flatMap(({ by }) => by.flatMap((row) => row.places));
  holdPlaces(places);
  try {
    await inLanes(wanted, lanes, async ({ key, by }) => {
      const open = new Map(by.map((row) => [row.index, row]));
      let read = 0n;
      const accept = (size: bigint): Destination | undefined => {
        read = size;
        const scatters: Scatter[] = [];
        for (const { index, bytes, places, refusal } of by) {
          const failure = refusal ?? wrongSize(size, bytes);
          if (failure === undefined) scatters.push(new Scatter(places));
          else {
            open.delete(index);
            outcomes.failWith(index, failure);
          }
        }
        return scatters.length === 0 ? undefined : fanOut(scatters);
      };
      await settleRead(context, key, accept, deadline, (failure) => {
        for (const index of open.keys())
          if (failure === undefined) outcomes.succeed(index, read);
          else outcomes.failWith(index, failure);
      });
    });
  } finally {
    releasePlaces(places);
  }
}

/** The values themselves; undefined where the outcome is a failure. Equal keys share one value. */
export async function readValues(
  context: ReadContext,
  keys: KeyList,
  lanes: number,
  outcomes: Outcomes,
  deadline: Deadline,
): Promise<(Uint8Array | undefined)[]> {
  const values = new Array<Uint8Array | undefined>(keys.length).fill(undefined);
  const wanted = group(keys, outcomes, (index): number => index);
  await inLanes(wanted, lanes, async ({ key, by }) => {
    let value = new Uint8Array(0);
    const accept = (size: bigint): Destination => {
      value = allocate(size);
      let at = 0;
      return {
        sink: (bytes) => {
          value.set(bytes, at);
          at += bytes.length;
        },
        restart: () => {
          at = 0;
        },
      };
    };
    await settleRead(context, key, accept, deadline, (failure) => {
      for (const [copy, index] of by.entries()) {
        if (failure !== undefined) outcomes.failWith(index, failure);
        else {
          values[index] = copy === 0 ? value : value.slice();
          outcomes.succeed(index, BigInt(value.length));
        }
      }
    });
  });
  return values;
}

/** The distinct keys of a call that can be asked for; the others are settled. */
function group<T>(keys: KeyList, outcomes: Outcomes, want: (index: number) => T): Wanted<T>[] {
  const wanted = new Map<string, Wanted<T>>();
  for (let index = 0; index < keys.length; index++) {
    const key = keyBytes(keys, index);
    const refusal = notForKeyQuery(key);
    if (key.length === 0) outcomes.fail(index, OBJECT_NOT_FOUND);
    else if (refusal !== undefined) outcomes.fail(index, INVALID_PARAMS, refusal);
    else {
      const item = want(index);
      const name = Buffer.from(key.buffer, key.byteOffset, key.length).toString("latin1");
      const known = wanted.get(name);
      if (known) known.by.push(item);
      else wanted.set(name, { key, by: [item] });
    }
  }
  return [...wanted.values()];
}

/** The places of row `index`; none when a segment is no registered memory. */
function rowOf(segments: SegmentTable, index: number, memory: MemoryMap): Row {
  const places: Place[] = [];
  let bytes = 0n;
  for (let i = segments.rowOffsets[index]!; i < segments.rowOffsets[index + 1]!; i++) {
    const address = segments.addresses[i]!;
    const size = segments.sizes[i]!;
    const place = memory.find(address, size);
    if (place === undefined) {
      const range = `[0x${address.toString(16)}, 0x${(address + size).toString(16)})`;
      const reason = `${range} is no memory of an arena or buffer of this store`;
      return { index, places: [], bytes: 0n, refusal: new AdminFailure(INVALID_PARAMS, reason) };
    }
    places.push(place);
    bytes += size;
  }
  return { index, places, bytes, refusal: undefined };
}

function wrongSize(size: bigint, bytes: bigint): AdminFailure | undefined {
  if (bytes === size) return undefined;
  return new AdminFailure(
    bytes < size ? INVALID_PARAMS : TRANSFER_FAIL,
    `the object has ${size} bytes, its segments ${bytes}`,
  );
}

function fanOut(scatters: readonly Scatter[]): Destination {
  return {
    sink: (bytes) => {
      for (const scatter of scatters) scatter.write(bytes);
    },
    restart: () => {
      for (const scatter of scatters) scatter.restart();
    },
  };
}

function allocate(size: bigint): Uint8Array<ArrayBuffer> {
  if (size <= BigInt(constants.MAX_LENGTH))
    try {
      return new Uint8Array(Number(size));
    } catch {
      // Refused by the system: the same as too large.
    }
  throw new AdminFailure(INVALID_PARAMS, `a value of ${size} bytes is too large for one typed array`);
}

async function settleRead(
  context: ReadContext,
  key: Uint8Array,
  accept: (size: bigint) => Destination | undefined,
  deadline: Deadline,
  settle: (failure: AdminFailure | undefined) => void,
): Promise<void> {
  try {
    if (deadline.expired) throw deadlinePassed("the call", deadline.ms);
    await readUnderLease(context, key, accept, deadline);
    settle(undefined);
  } catch (error) {
    settle(adminFailure(error));
  }
}
