/** When targets with `when: AfterRollout` have to wait. */
import assert from "node:assert/strict";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import { rolloutPending } from "../../../../src/controllers/binding/target-sync.ts";
import type { LiveSource } from "../../../../src/transform/live-source.ts";
import { secret } from "../../transform/sources.ts";

const source = (version: string): LiveSource => ({ ...secret({ key: "value" }), version });
const sources = (version: string) => new Map([["bucket", source(version)]]);

describe("a target that is written after the rollout", () => {
  it("waits until all workloads have rolled out", () => {
    assert.equal(rolloutPending(undefined, sources("u/1"))?.reason, "RolloutPending");
    assert.equal(rolloutPending({}, sources("u/1"))?.reason, "RolloutPending");
    assert.equal(rolloutPending({ rolledOutFor: new Map([["bucket", "u/1"]]) }, sources("u/1")), undefined);
  });

  it("waits if the values that were read are not those that have rolled out", () => {
    const rolledOutFor = new Map([["bucket", "u/1"]]);
    assert.equal(rolloutPending({ rolledOutFor }, sources("u/2"))?.reason, "RolloutPending");
    assert.equal(rolloutPending({ rolledOutFor }, new Map([["new", source("u/1")]]))?.reason, "RolloutPending");
    // The fields report why a source can't be read.
    const unread = new Map([["bucket", new Problem("Forbidden", "it may not read it")]]);
    assert.equal(rolloutPending({ rolledOutFor }, unread), undefined);
  });
});
