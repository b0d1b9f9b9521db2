/** When Inlay writes and removes the annotation that shows a pause-period. */
import assert from "node:assert/strict";
import type { SecretBinding } from "../../../../src/api/binding.ts";
import type { JsonObject } from "../../../../src/apimachinery/objects.ts";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import { type Pausable, Pauses, pauseOf } from "../../../../src/controllers/reloader/pauses.ts";
import { ApiError } from "../../../../src/kube/api-error.ts";
import { bindingOf, rolloutSpecOf } from "../../objects.ts";
import { DEPLOYMENTS } from "../../resources.ts";

const KEY = "deployment.reloader.stakater.com/paused-at";
const ACCOUNT = "system:serviceaccount:inlay-system:inlay-reloader";
const BEGAN = "2026-11-21T10:00:00.750Z";
const SINCE = "2026-11-21T10:00:00Z";
const at = (seconds: number) => Date.parse(BEGAN) + seconds * 1000;

function binding(minInterval: string | undefined, lastStartTime?: string): SecretBinding {
  const rollout = { revision: 1, digestKeyID: "one", digests: {}, ...(lastStartTime && { lastStartTime }) };
  return bindingOf({
    metadata: { name: "reloader-deployment-core", uid: `uid-${minInterval}` },
    spec: { rollout: rolloutSpecOf({ ...(minInterval && { minInterval }) }) },
    status: { rollout },
  });
}

describe("a pause-period", () => {
  it("is shown from the start of a rollout to its end, for the binding whose period ends last", () => {
    assert.deepEqual(pauseOf([binding("60s", BEGAN)], at(59)), { since: SINCE, endsAt: at(60) });
    assert.equal(pauseOf([binding("60s", BEGAN)], at(60)), undefined);
    assert.equal(pauseOf([binding("60s"), binding(undefined, BEGAN)], at(1)), undefined);
    const later = binding("60s", "2026-11-21T10:00:20Z");
    assert.equal(pauseOf([binding("60s", BEGAN), later], at(30))?.since, "2026-11-21T10:00:20Z");
  });
});

describe("the annotation of a pause", () => {
  let applied: JsonObject[];
  let answer: Error | undefined;
  let pauses: Pauses;
  beforeEach(() => {
    [applied, answer] = [[], undefined];
    const client = {
      apply: async (_: unknown, __: unknown, ___: unknown, leaves: JsonObject) => {
        if (answer !== undefined) throw answer;
        applied.push(leaves);
        return {
          apiVersion: "apps/v1",
          kind: "Deployment",
          metadata: { name: "core", uid: "1", resourceVersion: "2" },
        };
      },
    };
    pauses = new Pauses(client, ACCOUNT, KEY);
  });
  const core = (noted: string | undefined, bindings = [binding("60s", BEGAN)]): Pausable => ({
    ref: { resource: DEPLOYMENTS, namespace: "shop", name: "core" },
    version: { uid: "1" },
    noted,
    bindings,
  });
  const written = { metadata: { annotations: { [KEY]: SINCE } } };

  it("is written once, and removed when the pause ends", async () => {
    assert.deepEqual(await pauses.sync([core(undefined)], at(10)), { retry: "after", ms: 50_005 });
    assert.deepEqual(await pauses.sync([core(SINCE)], at(20)), { retry: "after", ms: 40_005 });
    assert.deepEqual(applied, [written]);
    assert.deepEqual(await pauses.sync([core(SINCE)], at(60)), { retry: "never" });
    assert.deepEqual(applied, [written, {}]);
    // The watch does not show it yet.
    await pauses.sync([core(SINCE)], at(60));
    await pauses.sync([core(undefined)], at(61));
    assert.equal(applied.length, 2);
  });

  it("by another client is released once, and then stays while it is the same", async () => {
    for (const noted of ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"])
      await pauses.sync([core(noted, [])], at(0));
    assert.deepEqual(applied, [{}, {}]);
  });

  it("is not needed on a deleted Deployment, and is retried if it is refused", async () => {
    answer = new ApiError("PATCH", 404, "NotFound");
    await pauses.sync([core(undefined)], at(1));
    answer = new ApiError("PATCH", 403, "Forbidden");
    await assert.rejects(pauses.sync([core(undefined)], at(1)), (error) => error instanceof Problem);
    answer = undefined;
    await pauses.sync([core(undefined)], at(1));
    assert.deepEqual(applied, [written]);
  });

  it("is reconciled when a binding with a pause-period has begun another rollout, and for no other binding", () => {
    assert.equal(pauses.hasBegun(binding("60s", BEGAN)), true);
    assert.equal(pauses.hasBegun(binding("60s", BEGAN)), false);
    assert.equal(pauses.hasBegun(binding("60s", "2026-11-21T11:00:00Z")), true);
    assert.equal(pauses.hasBegun(binding("61s")), false);
    assert.equal(pauses.hasBegun(binding(undefined, BEGAN)), false);
  });
});
