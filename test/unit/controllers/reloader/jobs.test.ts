/** Which Jobs annotations are about, while some are made anew. */
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

describe("annotations are about", () => {
  it("all workloads but Jobs of a CronJob", () => {
    assert.deepEqual(named(shown("migrate"), shown("nightly-1", { isPassing: true })), [["migrate", "migrate-uid"]]);
  });

  it("a Job, and not its copy, as long as the Job is there", () => {
    assert.deepEqual(named(copy, shown("migrate")), [["migrate", "migrate-uid"]]);
  });

  it("the Job that a copy stands for, by its own name and uid, once the Job is gone", () => {
    assert.deepEqual(named(shown("other"), copy), [
      ["other", "other-uid"],
      ["migrate", "first"],
    ]);
  });

  it("the copy says what the Job said", () => {
    const told = { own: { "reloader.stakater.com/auto": "true" }, pods: {} };
    const [each] = currentWorkloads([shown("inlay-copy-1", { ...copy.version.workload, reloaderAnnotations: told })]);
    assert.deepEqual(each?.version.workload?.reloaderAnnotations, told);
  });
});
