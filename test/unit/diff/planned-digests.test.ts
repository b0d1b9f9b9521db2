/** Which values of a binding count as changed for `inlay diff`, which has no digest key. */
import assert from "node:assert/strict";
import type { RolloutStatus } from "../../../src/api/rollout.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { PlannedDigests, type SourceChanges } from "../../../src/diff/planned-digests.ts";
import type { LiveSource } from "../../../src/transform/live-source.ts";
import { SECRETS } from "../resources.ts";
import { watched } from "../sources/watched.ts";
import { secret } from "../transform/sources.ts";

const PLACES = new Map([["s", watched({ resource: SECRETS, namespace: "team", name: "s" })]]);
const UNREAD = new Problem("Unavailable", "the value is unknown");
const before = {
  digestKeyID: "theirs",
  revision: 1,
  digests: { "s/a": "old", "s/b": "absent", "s/c": "kept" },
  pending: { digests: { "s/a": "new" } },
} as unknown as RolloutStatus;

async function digestsOf(source: LiveSource | Problem, changes: Partial<SourceChanges>, status = before) {
  const planned = new PlannedDigests();
  planned.set("team/x", { same: new Set(), live: new Map(), ...changes });
  const read = { sources: new Map([["s", source]]), sourceMismatch: undefined };
  const known = await planned.digests("team/x", "1", new Set(["s/a", "s/b", "s/c", "s/d"]), PLACES, read, status);
  assert.equal(known.keyId, "theirs");
  return known.digests;
}

describe("a value in a diff", () => {
  const same = new Set(["s"]);

  it("is the one that the controller has recorded last if the files don't change it", async () => {
    const digests = await digestsOf(secret({ a: "1", b: "2" }), { same });
    assert.equal(digests["s/a"], "new");
    // A value that did not exist before is new, and a missing one is none.
    assert.notEqual(digests["s/b"], "absent");
    assert.deepEqual([digests["s/c"], digests["s/d"]], [undefined, undefined]);
  });

  it("that is in the files is compared with the one in the cluster", async () => {
    const live = new Map([["s", secret({ a: "1", c: "2" })]]);
    const digests = await digestsOf(secret({ a: "1", c: "3" }), { live });
    assert.equal(digests["s/a"], "new");
    assert.ok(![undefined, "kept"].includes(digests["s/c"]));
  });

  it("that can't be read is unchanged if its source is, and otherwise it is unknown", async () => {
    const recorded = { ...before, digests: { "s/a": "1", "s/b": "2", "s/c": "3", "s/d": "4" } };
    assert.equal((await digestsOf(UNREAD, { same }, recorded))["s/d"], "4");
    await assert.rejects(digestsOf(UNREAD, {}, recorded), UNREAD);
    // No workload has used it yet.
    await assert.rejects(digestsOf(UNREAD, { same }), UNREAD);
  });
});
