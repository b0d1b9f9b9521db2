/** Graphs of bindings with few and many targets, for the tests of this folder. */
import type { Explanation, ObjectExplanation, TargetExplanation } from "../../../../src/explain/explanation.ts";
import { BINDING } from "../explained.ts";

/** Keys that a drawing could take for its own syntax. Each is short enough to be drawn as a whole. */
export const HOSTILE = [
  'a"]:::bad --> x["',
  "</text><script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "`b` &amp; #35; &#60;",
  "|x|{y}(z)[[w]] %%{init: {}}%%",
  "\u202e\u0007 \n end subgraph",
];
const PATH = "spec.storage.spec.s3.accesskey";

export function objectOf(name: string, reason?: string): ObjectExplanation {
  const status = reason === undefined ? {} : { status: { reason } };
  return { namespace: "registry", name, state: "Found", ...status, fields: [{ path: PATH, held: true }] };
}

export function targetOf(object: ObjectExplanation, path = PATH): TargetExplanation {
  const fields = [{ path, from: ["bucket/accessKeyID"] }];
  const kind = { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster" };
  return { ...kind, selects: false, creates: false, fields, objects: [object], more: 0 };
}

export function explanationOf(more: Partial<Explanation> = {}): Explanation {
  const bucket = { source: "bucket", kind: "Secret", namespace: "registry", name: "bucket" };
  return {
    binding: BINDING,
    account: { name: "ServiceAccount registry/inlay", state: "Found" },
    sources: [{ ...bucket, optional: false, state: "Found", uses: [{ key: "accessKeyID", present: true }] }],
    targets: [targetOf(objectOf("harbor", "Synced"))],
    conditions: [{ type: "Ready", status: "True", reason: "Synced", message: "", lastTransitionTime: "" }],
    events: [],
    advice: { reason: "Synced", message: "" },
    ...more,
  };
}

/** Of many targets, every seventh has a conflict. Its binding restarts a Deployment. */
export function explanationWith(targets: number): Explanation {
  return explanationOf({
    targets: Array.from({ length: targets }, (_, at) =>
      targetOf(objectOf(`harbor-${at}`, at % 7 === 3 ? "Conflict" : "Synced")),
    ),
    rollout: {
      suspended: false,
      restarts: ["Deployment core"],
      trackedValues: [],
      pending: {
        firstChangeTime: "",
        reason: "RollingOut",
        message: "",
        workloads: [
          { apiVersion: "apps/v1", kind: "Deployment", namespace: "registry", name: "core", state: "Rolling" },
        ],
      },
    },
  });
}
