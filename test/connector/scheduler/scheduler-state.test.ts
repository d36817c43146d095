import { test } from "uvu";
import * as assert from "uvu/assert";
import { SchedulerState } from "../../../src/connector/scheduler/scheduler-state.js";
import { RequestTracker } from "../../../src/request/request-tracker.js";

// Nobody outside sees a tracker's lists before a later step uses them, so what a failed step leaves is looked at here.

const BLOCKS = [[1, 2], [7]];
const TOKENS = [10, 11, 12];

function tracked() {
  const state = new SchedulerState();
  const tracker = new RequestTracker({
    reqId: "a",
    tokenLen: 32,
    allocatedBlockIds: BLOCKS,
    tokenIds: TOKENS,
    prefillEndTokens: 48,
  });
  state.trackers.set("a", tracker);
  const before = structuredClone({ ...tracker });
  const fails = (change: () => void) => {
    const step = () =>
      state.atomically(() => {
        state.willChange(tracker);
        change();
        throw new Error("the step fails");
      });
    assert.throws(step, /the step fails/);
    assert.equal({ ...tracker }, before);
    assert.is(state.trackers.get("a"), tracker);
  };
  return { state, tracker, fails };
}

test("a failed step takes back blocks and tokens that were appended", () => {
  const { tracker, fails } = tracked();
  fails(() => {
    tracker.update([[3, 4, 5], null]);
    tracker.update([[], [8]]);
    tracker.tokenIds!.push(13);
    tracker.tokenLen = 64;
  });
});

test("a failed step takes back a reset", () => {
  const { tracker, fails } = tracked();
  fails(() => tracker.reset());
});

test("a failed step takes back a reset after an update, and the other way round", () => {
  const { state, tracker, fails } = tracked();
  fails(() => {
    tracker.update([[3], [8]]);
    state.willChange(tracker);
    tracker.reset();
    state.willChange(tracker);
    tracker.allocatedBlockIds = [[5], [6]];
    tracker.update([[9], null]);
  });
});

test("a failed step forgets what it added, and knows what it removed", () => {
  const { state, tracker, fails } = tracked();
  state.unfinishedRequestIds.add("a");
  fails(() => {
    state.trackers.delete("a");
    state.trackers.set("b", tracker);
    state.unfinishedRequestIds.clear();
    state.scheduledRequestIds.add("b");
  });
  assert.equal([[...state.trackers.keys()], [...state.unfinishedRequestIds]], [["a"], ["a"]]);
  assert.is(state.scheduledRequestIds.size, 0);
});

test("a step that succeeds keeps what it changed", () => {
  const { state, tracker } = tracked();
  state.atomically(() => {
    state.willChange(tracker);
    tracker.update([[3], null]);
  });
  assert.equal(tracker.allocatedBlockIds, [[1, 2, 3], [7]]);
});

test.run();
