/** Which nodes the graph of a binding has, and the state of each. */
import assert from "node:assert/strict";
import type { Explanation } from "../../../../src/explain/explanation.ts";
import { collapsed, MAX_NODES_IN_COLUMN } from "../../../../src/explain/graph/graph.ts";
import { graphOfExplanation } from "../../../../src/explain/graph/read.ts";
import type { Trace } from "../../../../src/explain/trace-result.ts";
import { BINDING } from "../explained.ts";
import { explanationOf, explanationWith, objectOf, targetOf } from "./graphs.ts";

const nodesOf = (explanation: Explanation, traces: Trace[] = []) =>
  graphOfExplanation(explanation, traces).nodes.map(({ title, state, status }) => [title, state, status]);
const sourceWith = (more: object) => {
  const [source] = explanationOf().sources;
  const sources = [{ ...(source ?? assert.fail()), ...more }];
  return nodesOf(explanationOf({ sources })).at(0)?.slice(1);
};

describe("the graph of a binding", () => {
  it("leads from the Secret through the binding to the fields and the workloads", () => {
    const { nodes, edges } = graphOfExplanation(explanationWith(1), []);
    assert.deepEqual(
      nodes.map(({ column, title, lines, status }) => [column, title, ...lines, status]),
      [
        [0, "Secret registry/bucket", "accessKeyID", "exists"],
        [1, "SecretBinding registry/harbor-s3", "Synced"],
        [2, "HarborCluster registry/harbor-0", "spec.storage.spec.s3.accesskey from bucket/accessKeyID", "Synced"],
        [3, "Deployment registry/core", "rolling out"],
      ],
    );
    assert.deepEqual(edges, [
      { from: "source-0", to: "binding" },
      { from: "binding", to: "object-0-0" },
      { from: "binding", to: "workload-0", isRestart: true },
    ]);
  });

  it("shows the state of a source", () => {
    assert.deepEqual(sourceWith({ state: "NotFound" }), ["bad", "does not exist"]);
    assert.deepEqual(sourceWith({ state: "NotFound", optional: true }), ["neutral", "does not exist, optional"]);
    assert.deepEqual(sourceWith({ state: "Unreadable" }), ["neutral", "not readable by you"]);
    assert.deepEqual(sourceWith({ grants: { state: "NotFound", names: [] } }), ["bad", "NotGranted"]);
    assert.deepEqual(sourceWith({ uses: [{ key: "a", present: false }] }), ["bad", "KeyNotFound"]);
    const ready = { status: "False", reason: "VaultSealed", message: "" };
    assert.deepEqual(sourceWith({ store: { product: "Vault", reads: "data kv/a", ready } }), ["bad", "VaultSealed"]);
  });

  it("shows the state of the binding and its objects", () => {
    const own = (more: Partial<Explanation>) => nodesOf(explanationOf(more)).at(1)?.slice(1);
    assert.deepEqual(own({ conditions: [] }), ["waiting", "not reconciled yet"]);
    assert.deepEqual(own({ binding: { ...BINDING, suspended: true } }), ["neutral", "Suspended"]);
    assert.deepEqual(own({ binding: { ...BINDING, deleting: true } }), ["waiting", "being deleted"]);
    assert.deepEqual(own({ binding: { ...BINDING, observedGeneration: 1 } }), ["waiting", "Synced, outdated"]);
    const targets = [
      targetOf(objectOf("a", "Conflict")),
      targetOf(objectOf("b", "RolloutPending")),
      targetOf(objectOf("c")),
      targetOf({ ...objectOf("d"), state: "NotFound" }),
      { ...targetOf(objectOf("e")), objects: [], message: "there is no kind HarborCluster" },
    ];
    assert.deepEqual(nodesOf(explanationOf({ targets })).slice(2), [
      ["HarborCluster registry/a", "bad", "Conflict"],
      ["HarborCluster registry/b", "waiting", "RolloutPending"],
      ["HarborCluster registry/c", "waiting", "not written yet"],
      ["HarborCluster registry/d", "bad", "does not exist"],
      ["HarborCluster", "bad", "KindNotFound"],
    ]);
  });

  it("shows the workloads that refer to the Secret and restart, or the rules if none is known", () => {
    const rollout = { suspended: false, restarts: ["Deployment core"], trackedValues: [] };
    const workload = { apiVersion: "apps/v1", kind: "Deployment", references: ["env"] };
    const own = [{ binding: "registry/harbor-s3", suspended: false }];
    const trace: Trace = {
      object: { kind: "Secret", namespace: "registry", name: "bucket", state: "Found" },
      bindings: [],
      writers: [],
      grants: [],
      workloads: [
        { ...workload, name: "web", restarts: own },
        { ...workload, name: "other", restarts: [] },
      ],
      serviceAccounts: [],
      certificates: [],
      connections: [],
      unreadable: [],
    };
    const known = nodesOf(explanationOf({ rollout }), [trace]).slice(3);
    assert.deepEqual(known, [["Deployment registry/web", "neutral", "restarts when a value changes"]]);
    assert.deepEqual(nodesOf(explanationOf({ rollout })).slice(3), [
      ["Deployment core", "neutral", "restarts when a value changes"],
    ]);
  });

  it("shows at most a readable number of objects, problems first, and counts the others", () => {
    const whole = graphOfExplanation(explanationWith(200), []);
    const { nodes, edges } = collapsed(whole);
    const objects = nodes.filter(({ column }) => column === 2);
    assert.equal(objects.length, MAX_NODES_IN_COLUMN);
    assert.ok(objects.slice(0, -1).every(({ status }) => status === "Conflict"));
    assert.deepEqual(objects.at(-1), {
      id: "more-2",
      column: 2,
      title: "181 more",
      lines: ["-o json shows all of them"],
      state: "bad",
      status: "10 Conflict, 171 Synced",
    });
    assert.equal(edges.length, 1 + MAX_NODES_IN_COLUMN + 1);
    assert.match(whole.description, /203 objects, 29 with a problem, 1 waiting, 173 in order/);
  });
});
