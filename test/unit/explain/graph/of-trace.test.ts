/** Which nodes the graph of a traced Secret has, and the state of each. */
import assert from "node:assert/strict";
import { graphOfTrace } from "../../../../src/explain/graph/read.ts";
import type { Trace } from "../../../../src/explain/trace-result.ts";

const TRACE: Trace = {
  object: { kind: "Secret", namespace: "registry", name: "bucket", state: "Found" },
  bindings: [
    {
      binding: "registry/harbor-s3",
      source: "bucket",
      account: "inlay",
      reason: "Conflict",
      suspended: false,
      targets: [
        {
          apiVersion: "goharbor.io/v1beta1",
          kind: "HarborCluster",
          object: "registry/harbor",
          reason: "Conflict",
          fields: [{ path: "spec.a", keys: ["accessKeyID"] }],
        },
        { apiVersion: "v1", kind: "Secret", object: "other/copy", reason: "Synced", fields: [] },
      ],
      restarts: [],
    },
  ],
  writers: [{ binding: "vault/writer", fields: ["data.a"] }],
  grants: [],
  workloads: [
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      name: "web",
      references: ["env"],
      keys: ["accessKeyID"],
      restarts: [{ binding: "registry/harbor-s3", suspended: false }],
    },
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      namespace: "other",
      name: "far",
      copy: { kind: "Secret", name: "copy" },
      references: ["volume"],
      restarts: [{ binding: "registry/harbor-s3", suspended: true }],
    },
    { apiVersion: "batch/v1", kind: "CronJob", name: "backup", references: ["env"], restarts: [] },
  ],
  serviceAccounts: ["puller"],
  certificates: [{ kind: "Ingress", namespace: "registry", name: "web" }],
  connections: [{ kind: "VaultConnection", name: "main", uses: ["CA"] }],
  unreadable: [],
};

describe("the graph of a Secret", () => {
  it("leads from the writers through the Secret to everything that uses it, with the state of each", () => {
    const { nodes, edges } = graphOfTrace(TRACE);
    assert.deepEqual(
      nodes
        .toSorted((a, b) => a.column - b.column)
        .map(({ column, title, state, status }) => [column, title, state, status]),
      [
        [0, "SecretBinding vault/writer", "neutral", "writes it"],
        [1, "Secret registry/bucket", "good", "exists"],
        [2, "SecretBinding registry/harbor-s3", "bad", "Conflict"],
        [3, "HarborCluster registry/harbor", "bad", "Conflict"],
        [3, "Secret other/copy", "good", "Synced"],
        [4, "Deployment registry/web", "good", "restarts when a value changes"],
        [4, "Deployment other/far", "neutral", "restarts are suspended"],
        [4, "CronJob registry/backup", "neutral", "uses it at its next run"],
        [4, "ServiceAccount registry/puller", "neutral", "pulls images with it"],
        [4, "Ingress registry/web", "neutral", "uses it as its certificate"],
        [4, "VaultConnection registry/main", "neutral", "uses it as CA"],
      ],
    );
    const titles = new Map(nodes.map(({ id, title }) => [id, title]));
    const flows = edges.map(({ from, to, isRestart }) =>
      [titles.get(from), isRestart ? "restarts" : "to", titles.get(to)].join(" "),
    );
    for (const expected of [
      "SecretBinding vault/writer to Secret registry/bucket",
      "Secret registry/bucket to SecretBinding registry/harbor-s3",
      "SecretBinding registry/harbor-s3 to HarborCluster registry/harbor",
      "Secret registry/bucket to Deployment registry/web",
      "SecretBinding registry/harbor-s3 restarts Deployment registry/web",
      "Secret other/copy to Deployment other/far",
    ])
      assert.ok(flows.includes(expected), expected);
  });

  it("shows a Secret that does not exist, for which others wait", () => {
    const [node] = graphOfTrace({ ...TRACE, object: { ...TRACE.object, state: "NotFound" } }).nodes;
    assert.deepEqual([node?.state, node?.status], ["bad", "does not exist"]);
  });
});
