import { CODE } from "../shared/codes.js";
import type { Deadline } from "../shared/deadline.js";
import type { KeyList } from "../shared/keys.js";
import { inLanes } from "../shared/lanes.js";
import type { CheckedRows } from "../shared/rows.js";
import { ArrivingValue } from "./arriving-value.js";
import { keyBytes, notForKeyQuery } from "./carried-keys.js";
import { AdminFailure, adminFailure, deadlinePassed } from "./failure.js";
import { type Destination, type ReadContext, readUnderLease } from "./leased-read.js";
import type { Outcomes } from "./outcomes.js";
import type { RegionMemory } from "./region-memory.js";
import { Scatter } from "./scatter.js";

/** An object that a call reads, and the positions in the call that want it. */
interface Wanted {
  readonly key: Uint8Array;
  readonly by: number[];
}

/**
 * Spreads every object over the segments of its rows; an object that several rows want is read once. Settles when no row
 * is written any more.
 */
export async function readInto(
  context: ReadContext,
  keys: KeyList,
  rows: CheckedRows,
  memory: RegionMemory,
  lanes: number,
  outcomes: Outcomes,
  deadline: Deadline,
): Promise<void> {
  await inLanes(group(keys, outcomes), lanes, async ({ key, by }) => {
    const open = new Set(by);
    let read = 0n;
    const accept = (size: bigint): Destination | undefined => {
      read = size;
      const scatters: Scatter[] = [];
      for (const row of by) {
        const failure = unfit(rows, row, size);
        if (failure === undefined)
          scatters.push(new Scatter(rows.pieces(row).map((piece) => memory.place(piece))));
        else {
          open.delete(row);
          outcomes.failWith(row, failure);
        }
      }
      return scatters.length === 0 ? undefined : fanOut(scatters);
    };
    await settleRead(context, key, accept, deadline, (failure) => {
      for (const row of open)
        if (failure === undefined) outcomes.succeed(row, read);
        else outcomes.failWith(row, failure);
    });
  });
}

/** The values themselves; undefined where the outcome is a failure. Equal keys share one read. */
export async function readValues(
  context: ReadContext,
  keys: KeyList,
  lanes: number,
  outcomes: Outcomes,
  deadline: Deadline,
): Promise<(Uint8Array | undefined)[]> {
  const values = new Array<Uint8Array | undefined>(keys.length).fill(undefined);
  await inLanes(group(keys, outcomes), lanes, async ({ key, by }) => {
    let value: ArrivingValue | undefined;
    const accept = (size: bigint): Destination => {
      value = new ArrivingValue(size);
      return value;
    };
    await settleRead(context, key, accept, deadline, (failure) => {
      for (const [copy, index] of by.entries()) {
        if (failure !== undefined) outcomes.failWith(index, failure);
        else {
          const { bytes } = value!;
          values[index] = copy === 0 ? bytes : bytes.slice();
          outcomes.succeed(index, BigInt(bytes.length));
        }
      }
    });
  });
  return values;
}

/** The distinct keys of a call that can be asked for; the others are settled. */
function group(keys: KeyList, outcomes: Outcomes): Wanted[] {
  const wanted = new Map<string, Wanted>();
  for (let index = 0; index < keys.length; index++) {
    const key = keyBytes(keys, index);
    const refusal = notForKeyQuery(key);
    if (key.length === 0) outcomes.fail(index, CODE.OBJECT_NOT_FOUND);
    else if (refusal !== undefined) outcomes.fail(index, CODE.INVALID_PARAMS, refusal);
    else {
      const name = Buffer.from(key.buffer, key.byteOffset, key.length).toString("latin1");
      const known = wanted.get(name);
      if (known) known.by.push(index);
      else wanted.set(name, { key, by: [index] });
    }
  }
  return [...wanted.values()];
}

/** Why an object of `size` bytes can't go to a row. */
function unfit(rows: CheckedRows, row: number, size: bigint): AdminFailure | undefined {
  if (!rows.isUsable(row)) return new AdminFailure(CODE.INVALID_PARAMS, foreign(rows, row));
  const bytes = rows.bytes(row);
  if (bytes === size) return undefined;
  return new AdminFailure(
    bytes < size ? CODE.INVALID_PARAMS : CODE.TRANSFER_FAIL,
    `the object has ${size} bytes, its segments ${bytes}`,
  );
}

/** Names the first segment of a row that lies in no region. */
function foreign({ addresses, sizes, rowOffsets, plan }: CheckedRows, row: number): string {
  for (let i = rowOffsets[row]!; i < rowOffsets[row + 1]!; i++) {
    const [address, size] = [addresses[i]!, sizes[i]!];
    if (size > 0n && plan.segmentRanges[i]! < 0)
      return `[0x${address.toString(16)}, 0x${(address + size).toString(16)}) is no memory of an arena or buffer of this store`;
  }
  return "a segment is no memory of an arena or buffer of this store";
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
