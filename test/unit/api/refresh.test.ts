/** When an object counts as asked to reconcile now, and what its status records. */
import assert from "node:assert/strict";
import { handledRefresh, isRefreshRequested, REFRESH_ANNOTATION, refreshOf } from "../../../src/api/refresh.ts";

const asked = (text: string | undefined, last?: string) => ({
  metadata: { annotations: text === undefined ? {} : { [REFRESH_ANNOTATION]: text } },
  ...(last !== undefined && { status: { lastHandledRefresh: last } }),
});

describe("a request to reconcile now", () => {
  it("is a text of the annotation that the status does not record", () => {
    assert.ok(isRefreshRequested(asked("a")));
    assert.ok(isRefreshRequested(asked("b", "a")));
    assert.ok(!isRefreshRequested(asked("a", "a")));
    assert.ok(!isRefreshRequested(asked(undefined, "a")));
    assert.ok(!isRefreshRequested({ metadata: {} }));
  });

  it("is recorded when it is handled, and the record stays when the annotation is removed", () => {
    assert.deepEqual(handledRefresh(asked("b", "a"), false), { lastHandledRefresh: "a" });
    assert.deepEqual(handledRefresh(asked("b", "a"), true), { lastHandledRefresh: "b" });
    assert.deepEqual(handledRefresh(asked(undefined, "a"), true), { lastHandledRefresh: "a" });
    assert.deepEqual(handledRefresh(asked(undefined), true), {});
  });

  it("is recorded by at most 256 whole characters, and counts as handled then", () => {
    const long = asked("\u{1F511}".repeat(300));
    const text = refreshOf(long) ?? "";
    assert.deepEqual([[...text].length, text.isWellFormed()], [256, true]);
    assert.ok(!isRefreshRequested({ ...long, status: handledRefresh(long, true) }));
  });
});
