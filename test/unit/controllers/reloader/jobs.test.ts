/** Which Jobs annotations apply to while Jobs are recreated. */
import assert from "node:assert/strict";
import { currentWorkloads } from "../../../../src/controllers/reloader/inventory.ts";
import type { Workload } from "../../../../src/workloads/workload.ts";

const shown = (name: string, workload: object = {}) => ({
  name,
  version: { uid: `${name}-uid`, resourceVersion: "1", generation: undefined, workload: workload as Workload },
});
const copy = shown("inlay-copy-1", { isPassing: true, copied: { name: "migrate", uid: "first" } });
const named = (...all: Parameters<typeof currentWorkloads>[0]) =>
  currentWorkloads(all).map(({ name, version }) => [name, version.uid]);

describe("annotations apply to", () => {
  it("all workloads except Jobs of a CronJob", () => {
    assert.deepEqual(named(shown("migrate"), shown("nightly-1", { isPassing: true })), [["migrate", "migrate-uid"]]);
  });

  it("a Job, and not to its copy, while the Job exists", () => {
    assert.deepEqual(named(copy, shown("migrate")), [["migrate", "migrate-uid"]]);
  });

  it("the Job of a copy, with the Job's name and uid, once the Job is deleted", () => {
    assert.deepEqual(named(shown("other"), copy), [
      ["other", "other-uid"],
      ["migrate", "first"],
    ]);
  });

  it("a copy with the annotations of the Job", () => {
    const annotations = { own: { "reloader.stakater.com/auto": "true" }, pods: {} };
    const [each] = currentWorkloads([
      shown("inlay-copy-1", { ...copy.version.workload, reloaderAnnotations: annotations }),
    ]);
    assert.deepEqual(each?.version.workload?.reloaderAnnotations, annotations);
  });
});
