/** Which record of the status belongs to a target, also if its object is unknown. */
import assert from "node:assert/strict";
import type { Target, TargetStatus } from "../../../src/api/binding.ts";
import type { ObjectRef } from "../../../src/apimachinery/objects.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { targetsOf } from "../../../src/targets/records.ts";
import { bindingOf, recordOf, targetOf } from "../objects.ts";
import { HARBOR } from "../resources.ts";

const held = recordOf({ uid: "u", paths: ["spec.key"], onRelease: "Remove" });
const mistake = new Problem("InvalidPath", "it can't be read");

function of(targets: TargetStatus[], members: { target: Target; ref: ObjectRef | Problem }[]) {
  return targetsOf(bindingOf({ status: { targets } }), {
    objects: members.map((each) => ({ ...each, selected: false })),
    unresolved: [],
    closed: [],
  });
}

describe("a target's record", () => {
  it("is that of its object", () => {
    const { before: named, recorded } = of([recordOf({ name: "other" }), held], [{ target: targetOf(), ref: HARBOR }]);
    assert.deepEqual(named[0]?.record, held);
    assert.deepEqual([...recorded], [held]);
  });

  it("is kept while a mistake or a failure prevents its resolution, with and without a namespace", () => {
    for (const more of [{}, { namespace: "registry" }, { apiVersion: "goharbor.io/v1" }]) {
      const { before: named, recorded } = of([held], [{ target: targetOf(more), ref: mistake }]);
      assert.deepEqual(named[0]?.record, held);
      assert.deepEqual([...recorded], [held]);
    }
    const { namespace: _, ...cluster } = recordOf({ uid: "u" });
    assert.deepEqual(of([cluster], [{ target: targetOf(), ref: mistake }]).before[0]?.record, cluster);
  });

  it("is of no other object", () => {
    for (const more of [{ namespace: "elsewhere" }, { name: "other" }, { kind: "Other" }]) {
      assert.equal(of([held], [{ target: targetOf(more), ref: mistake }]).recorded.size, 0);
    }
  });

  it("stays with the first of two targets for one object, in any order of the status", () => {
    const members = [
      { target: targetOf(), ref: HARBOR },
      { target: targetOf({ namespace: "registry" }), ref: mistake },
    ];
    const twin = recordOf({ reason: "InvalidBinding" });
    for (const status of [[held], [held, twin], [twin, held]]) {
      const { before: named, recorded } = of(status, members);
      assert.deepEqual(named[0]?.record, held);
      assert.equal(named[1]?.record.uid, undefined);
      assert.equal(recorded.size, status.length);
    }
  });
});
