/** The text of `inlay diff` about restarts. */
import assert from "node:assert/strict";
import { differenceText, differs, type Restarts } from "../../../src/diff/difference.ts";
import { opened } from "../../../src/render/rendering.ts";

const own = {
  apiVersion: "inlay.dev/v1alpha1",
  kind: "SecretBinding",
  namespace: "team",
  name: "b",
  change: "none" as const,
  fields: [],
  patch: [],
};

function shown(restarts: Restarts) {
  const bindings = [{ binding: "team/b", as: "you", own, targets: [], restarts }];
  const open = opened({ objects: [], bindings, notes: [], mistakes: [] }, false);
  return {
    lines: differenceText(open, 200).map((line) => line.trim().replaceAll(/ {2,}/g, " | ")),
    differs: differs(open),
  };
}

const restart = {
  kind: "Deployment",
  namespace: "team",
  name: "web",
  when: "Later",
  why: "Secret team/s changed",
} as const;

describe("the text of a diff", () => {
  it("says when each workload would restart and why", () => {
    const waits = { reason: "OutsideWindow", message: "the window is closed", until: "2030-01-01T03:00:00.000Z" };
    const workloads = [restart, { ...restart, name: "api", after: "web" }];
    const closed = shown({ workloads, waits });
    assert.equal(closed.differs, true);
    assert.deepEqual(closed.lines.slice(2), [
      "WORKLOAD | WOULD RESTART | BECAUSE",
      "Deployment team/web | in the window that begins at 2030-01-01T03:00:00.000Z | Secret team/s changed",
      "Deployment team/api | after step web | Secret team/s changed",
      "Restarts wait: OutsideWindow: the window is closed",
    ]);
    const debounced = shown({ workloads: [restart], waits: { ...waits, reason: "Debounce" } });
    assert.match(debounced.lines.join("\n"), /from 2030-01-01T03:00:00\.000Z/);
  });

  it("says that restarts are unknown, which is no change", () => {
    const unknown = shown({ workloads: [], problem: { reason: "Forbidden", message: "you may not list deployments" } });
    assert.deepEqual(
      [unknown.differs, unknown.lines.at(-1)],
      [false, "Restarts are unknown: Forbidden: you may not list deployments"],
    );
  });
});
