/** What is written to a restart field, and when the workload has restarted for that. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { KubeObject } from "../../../src/apimachinery/objects.ts";
import { givenText, restarting, restartTime } from "../../../src/workloads/workload.ts";

const RESTART_AT = FieldPath.parse("spec.restartAt");
const STRIMZI = FieldPath.parse('metadata.annotations["strimzi.io/manual-rolling-update"]');
const metadata = { name: "main", uid: "1", resourceVersion: "1" };
const rollout = (restartAt: unknown, restartedAt?: unknown, apiVersion = "argoproj.io/v1alpha1"): KubeObject => ({
  apiVersion,
  kind: "Rollout",
  metadata,
  spec: { restartAt },
  status: { restartedAt },
});

describe("a restart field", () => {
  it("accepts any text, unless it is a time or one of Strimzi's annotations", () => {
    const of = (path: string, isRestartField = true) => givenText({ stampAt: FieldPath.parse(path), isRestartField });
    assert.equal(of("spec.restartAt"), "time");
    assert.equal(of(String(STRIMZI)), "true");
    assert.equal(of('metadata.annotations["kubectl.kubernetes.io/restartedAt"]'), undefined);
    assert.equal(of('spec.podAnnotations["inlay.dev/rollout"]'), undefined);
    // In a pod template every annotation changes the pods.
    assert.equal(of('spec.template.metadata.annotations["restartAt"]', false), undefined);
  });

  it("gets a time after the change, by less than two seconds, without a fraction", () => {
    assert.equal(restartTime("2026-11-21T10:00:00.000Z"), "2026-11-21T10:00:01Z");
    assert.equal(restartTime("2026-12-31T23:59:59.999Z"), "2027-01-01T00:00:00Z");
    fc.assert(
      fc.property(fc.date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true }), (changed) => {
        const time = restartTime(changed.toISOString());
        assert.match(time, /:\d\dZ$/);
        const later = Date.parse(time) - changed.getTime();
        assert.ok(later > 0 && later <= 1000);
      }),
    );
  });

  it("of an Argo Rollout is done when its controller reports that time, in whatever format", () => {
    const at = "2026-11-21T10:00:01Z";
    assert.equal(restarting(rollout(at), RESTART_AT)?.state, "Rolling");
    assert.equal(restarting(rollout(at, "2026-11-20T10:00:01Z"), RESTART_AT)?.state, "Rolling");
    assert.equal(restarting(rollout(at, at), RESTART_AT), undefined);
    assert.equal(restarting(rollout(at, "2026-11-21T11:00:01+01:00"), RESTART_AT), undefined);
    assert.equal(restarting(rollout(undefined), RESTART_AT), undefined);
    assert.equal(restarting(rollout(at, undefined, "example.com/v1"), RESTART_AT), undefined);
  });

  it("of Strimzi is done when Strimzi has removed it", () => {
    const annotated = (annotations: Record<string, string>): KubeObject => ({
      apiVersion: "core.strimzi.io/v1beta2",
      kind: "StrimziPodSet",
      metadata: { ...metadata, annotations },
    });
    assert.equal(restarting(annotated({ "strimzi.io/manual-rolling-update": "true" }), STRIMZI)?.state, "Rolling");
    assert.equal(restarting(annotated({ "strimzi.io/pause-reconciliation": "true" }), STRIMZI), undefined);
  });
});
