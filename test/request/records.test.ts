import { test } from "uvu";
import * as assert from "uvu/assert";
import { isMooncakeKvError } from "../../src/errors.js";
import {
  BoundaryPut,
  createLookupResult,
  MooncakeStoreConnectorMetadata,
  MooncakeStoreWorkerMetadata,
  ReqMeta,
  RequestTracker,
  TailKeyBoundary,
} from "../../src/request/index.js";

const ours = (pattern: RegExp) => (error: unknown) =>
  isMooncakeKvError(error, "ERR_REQUEST") && pattern.test(error.message);

test("an update extends each group's own list, or nothing at all", () => {
  const request = new RequestTracker({ reqId: "r", tokenLen: 0, allocatedBlockIds: [[1], []] });
  const [first] = request.allocatedBlockIds;
  request.update([[2, 3], null]);
  assert.equal(request.allocatedBlockIds, [[1, 2, 3], []]);
  assert.is(request.allocatedBlockIds[0], first);
  assert.throws(() => request.update([[4]]), ours(/2 cache groups.*lists 1/));
  assert.equal(request.allocatedBlockIds, [[1, 2, 3], []]);
});

test("a tracker copies what it is given, and forgets it on reset", () => {
  const allocatedBlockIds = [[1]];
  const request = new RequestTracker({ reqId: "r", tokenLen: 5, allocatedBlockIds, tokenIds: [7] });
  allocatedBlockIds[0]!.push(2);
  assert.equal(request.allocatedBlockIds, [[1]]);
  request.reset();
  assert.equal({ ...request }, { ...new RequestTracker({ reqId: "r", tokenLen: 0, allocatedBlockIds: [] }) });
  assert.throws(
    () => new RequestTracker({ reqId: "r", tokenLen: -1, allocatedBlockIds: [] }),
    ours(/tokenLen is -1/),
  );
});

test("boundaries and boundary puts are frozen values", () => {
  const boundary = new TailKeyBoundary(1, 28);
  assert.throws(() => Object.assign(boundary, { numTokens: 3 }), TypeError);
  assert.ok(boundary.equals(new TailKeyBoundary(1, 28)) && !boundary.equals(new TailKeyBoundary(1, 29)));
  assert.is(boundary.identity, new TailKeyBoundary(1, 28).identity);
  assert.is.not(boundary.identity, new TailKeyBoundary(12, 8).identity);
  const put = new BoundaryPut(1, 7, 12);
  assert.throws(() => Object.assign(put, { blockId: 3 }), TypeError);
  assert.equal(put.toTuple(), [1, 7, 12]);
  const puts = [new BoundaryPut(1, 2, 3), new BoundaryPut(1, 2, 1), new BoundaryPut(0, 9, 9)];
  assert.equal(
    puts.sort(BoundaryPut.compare).map((each) => each.toTuple()),
    [
      [0, 9, 9],
      [1, 2, 1],
      [1, 2, 3],
    ],
  );
  assert.throws(() => new BoundaryPut(1, -7, 12), ours(/blockId is -7/));
  assert.throws(() => new TailKeyBoundary(0.5, 1), ours(/groupId is 0.5/));
  assert.equal(createLookupResult(0), { hitLength: 0, tailKeyBoundaries: [] });
  assert.throws(() => createLookupResult(-1), ours(/hitLength is -1/));
});

test("connector metadata keeps jobs in order and its own sets", () => {
  const unfinished = new Set(["a"]);
  const metadata = new MooncakeStoreConnectorMetadata(unfinished, ["c", "c"]);
  unfinished.add("b");
  for (const reqId of ["b", "a", "b"])
    metadata.addRequest(ReqMeta.create({ reqId, tokenLenChunk: 0, blockIds: [], blockHashes: [] }));
  assert.equal(
    metadata.requests.map(({ reqId }) => reqId),
    ["b", "a", "b"],
  );
  assert.equal([[...metadata.unfinishedRequestIds], [...metadata.preemptedReqIds]], [["a"], ["c"]]);
});

test("reports of workers add up, even a report and itself", () => {
  const first = new MooncakeStoreWorkerMetadata([
    [1, 1],
    [2, 3],
  ]);
  const other = new MooncakeStoreWorkerMetadata([
    [3, 1],
    [2, 1],
  ]);
  assert.is(first.aggregate(other), first);
  assert.equal(
    [...first.completedSaves],
    [
      [1, 1],
      [2, 4],
      [3, 1],
    ],
  );
  assert.equal(
    [...other.completedSaves],
    [
      [3, 1],
      [2, 1],
    ],
  );
  assert.equal(
    [...first.aggregate(first).completedSaves],
    [
      [1, 2],
      [2, 8],
      [3, 2],
    ],
  );
});

test("what is no report is refused", () => {
  const report = new MooncakeStoreWorkerMetadata([[1, 1]]);
  for (const other of [null, {}, { completedSaves: [[1, 1]] }])
    assert.throws(
      () => report.aggregate(other as unknown as MooncakeStoreWorkerMetadata),
      ours(/must be a Map/),
    );
  assert.throws(() => new MooncakeStoreWorkerMetadata([[1, 0]]), ours(/ranks is 0/));
  assert.throws(() => new MooncakeStoreWorkerMetadata([[-1, 1]]), ours(/store job id is -1/));
});

test.run();
