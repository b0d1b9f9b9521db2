/** Whether the pods of a workload's template are younger than a change, by what the API server shows of its revisions. */
import assert from "node:assert/strict";
import type { KubeObject, ObjectRef, Resource } from "../../../../src/apimachinery/objects.ts";
import { DEPLOYMENTS } from "../../../../src/apimachinery/resources.ts";
import { ApiError } from "../../../../src/kube/api-error.ts";
import { isTemplateYounger } from "../../../../src/rollout/decide/read-workload.ts";

const REVISION = "deployment.kubernetes.io/revision";
const AT = 1_800_000_000;
const timeOf = (seconds: number) => new Date(seconds * 1000).toISOString();

const kindOf = (kind: string): Resource => ({ ...DEPLOYMENTS, kind, plural: `${kind.toLowerCase()}s` });

function workload(kind: string, status: object = {}, generation = 3): KubeObject {
  const metadata = { name: "web", uid: "web", resourceVersion: "40", generation, annotations: { [REVISION]: "2" } };
  const selector = { matchLabels: { app: "web" } };
  return {
    apiVersion: "apps/v1",
    kind,
    metadata,
    spec: { selector },
    status: { observedGeneration: 3, ...status },
  } as KubeObject;
}

const revisionOf = (name: string, number: number, more: object = {}): KubeObject =>
  ({
    apiVersion: "apps/v1",
    kind: "Revision",
    metadata: {
      name,
      uid: name,
      resourceVersion: "30",
      creationTimestamp: timeOf(AT),
      annotations: { [REVISION]: String(number) },
      ownerReferences: [{ uid: "web", controller: true }],
      ...more,
    },
    revision: number,
  }) as unknown as KubeObject;

interface Cluster {
  found?: KubeObject | ApiError;
  revisions?: KubeObject[] | ApiError;
  /** The names of the revisions that existed in the version of the change. */
  earlier?: string[] | ApiError;
}

const gone = new ApiError("GET", 410, "Expired");
const denied = new ApiError("GET", 403, "Forbidden");

/** Whether the pods are younger than a change in version 20. */
async function isYounger(kind: string, { found = workload(kind), revisions = [], earlier = [] }: Cluster, at?: number) {
  const orThrow = <T>(answer: T | ApiError): T => {
    if (answer instanceof ApiError) throw answer;
    return answer;
  };
  const client = {
    get: async () => orThrow(found),
    async *list() {
      yield orThrow(revisions);
    },
    getAt: async (_: unknown, { name }: ObjectRef, version: string) => {
      assert.equal(version, "20");
      return orThrow(earlier).includes(name) ? revisionOf(name, 0) : undefined;
    },
  };
  const ref = { resource: kindOf(kind), namespace: "team", name: "web" };
  const version = { uid: "web", resourceVersion: "39", generation: 3 };
  const change = { version: "20", ...(at !== undefined && { at }) };
  return isTemplateYounger(client as never, "system:serviceaccount:team:inlay", { ref, version }, change);
}

describe("the pods of a workload's template", () => {
  const both = [revisionOf("old", 1), revisionOf("new", 2)];
  const kinds = { Deployment: {}, StatefulSet: { updateRevision: "new" }, DaemonSet: {} };
  for (const [kind, status] of Object.entries(kinds)) {
    const found = workload(kind, status);
    it(`of a ${kind} are younger than a change if its revision did not exist then`, async () => {
      assert.equal(await isYounger(kind, { found, revisions: both, earlier: ["old"] }), true);
      assert.equal(await isYounger(kind, { found, revisions: both, earlier: ["old", "new"] }), false);
    });

    it(`of a ${kind} are not if an earlier template is used again`, async () => {
      const again = workload(kind, status === kinds.StatefulSet ? { updateRevision: "old" } : {});
      const revisions = [revisionOf("old", 3), revisionOf("new", 2)];
      again.metadata.annotations = { [REVISION]: "3" };
      assert.equal(await isYounger(kind, { found: again, revisions, earlier: ["old"] }), false);
    });
  }

  const revisions = both;
  it("are younger by the times if the version of the change is gone, and the times differ enough", async () => {
    for (const [at, younger] of [
      [AT - 2, true],
      [AT - 1, false],
      [AT, false],
      [undefined, false],
    ] as const)
      assert.equal(await isYounger("Deployment", { revisions, earlier: gone }, at), younger, String(at));
  });

  it("are not younger if the template is not observed, or changed since the decision", async () => {
    for (const found of [workload("Deployment", { observedGeneration: 2 }), workload("Deployment", {}, 4)])
      assert.equal(await isYounger("Deployment", { found, revisions }), false);
    const other = workload("Deployment");
    other.metadata.uid = "other";
    assert.equal(await isYounger("Deployment", { found: other, revisions }), false);
  });

  it("are not younger if that can't be read", async () => {
    assert.equal(await isYounger("Deployment", { found: denied, revisions }), false);
    assert.equal(await isYounger("Deployment", { revisions: denied }), false);
    assert.equal(await isYounger("Deployment", { revisions, earlier: denied }), false);
    assert.equal(await isYounger("Rollout", { revisions }), false);
  });

  it("are not younger if the revision is of another workload, or there are too many", async () => {
    const foreign = both.map((each) => ({ ...each, metadata: { ...each.metadata, ownerReferences: [{ uid: "x" }] } }));
    assert.equal(await isYounger("Deployment", { revisions: foreign as KubeObject[] }), false);
    const many = Array.from({ length: 101 }, (_, n) => revisionOf(`r${n}`, n));
    assert.equal(await isYounger("Deployment", { revisions: many }), false);
    assert.equal(await isYounger("Deployment", { revisions: many.slice(1) }), true);
  });
});
