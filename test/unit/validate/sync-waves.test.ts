/** `inlay validate` warns of bindings that Argo CD applies before what they wait for. */
import assert from "node:assert/strict";
import { validateTexts } from "./texts.ts";

const annotated = (annotations: string) => `annotations: {${annotations}}`;
const wave = (n: number) => annotated(`argocd.argoproj.io/sync-wave: "${n}"`);

const binding = (metadata: string, source = "secret: {name: bucket}") => `apiVersion: inlay.dev/v1alpha1
kind: SecretBinding
metadata: {name: b, namespace: team, ${metadata}}
spec:
  sources: [{${source}}]
  targets:
    - apiVersion: example.com/v1
      kind: Shop
      name: shop
      fields: [{path: spec.key, from: {source: bucket, key: a}}]
`;
const shop = (metadata: string) =>
  `apiVersion: example.com/v1\nkind: Shop\nmetadata: {name: shop, namespace: team, ${metadata}}\n`;
const secret = (metadata: string) =>
  `apiVersion: v1\nkind: Secret\nmetadata: {name: bucket, namespace: team, ${metadata}}\n`;
const account = (metadata: string) =>
  `apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: inlay, namespace: team, ${metadata}}\n`;
const rbac = (kind: string, metadata: string, more: string) =>
  `apiVersion: rbac.authorization.k8s.io/v1\nkind: ${kind}\nmetadata: {name: inlay, ${metadata}}\n${more}\n`;
const roleBinding = (metadata: string) =>
  rbac(
    "RoleBinding",
    metadata,
    "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: inlay}\nsubjects: [{kind: ServiceAccount, name: inlay, namespace: team}]",
  );

/** `line reason` of each finding, without those about fields. */
async function found(...texts: string[]): Promise<string[]> {
  const { errors } = await validateTexts({ "a.yaml": texts.join("---\n") });
  return errors.map(({ line, reason, severity }) => `${line} ${severity} ${reason}`);
}

describe("inlay validate of sync waves", () => {
  it("warns of a binding before its target, its source, its account and each part of its permissions, at the annotation", async () => {
    const files = (of: string[]) => [
      binding(of[0] ?? ""),
      shop(of[1] ?? ""),
      secret(of[2] ?? ""),
      account(of[3] ?? ""),
      roleBinding(`namespace: team, ${of[4] ?? ""}`),
      rbac("ClusterRole", of[5] ?? "", "rules: []"),
    ];
    assert.deepEqual(await found(...files([])), []);
    assert.deepEqual(await found(...files([wave(1)])), []);
    assert.deepEqual(await found(...files([wave(0), wave(0), wave(-1), wave(-1), wave(-2)])), []);
    const all = ["TargetNotFound", "SourceNotFound", "ServiceAccountNotFound", "Forbidden"];
    assert.deepEqual(
      await found(...files([wave(-1)])),
      all.map((reason) => `3 warning ${reason}`),
    );
    for (const [at, reason] of [...all, "Forbidden"].entries()) {
      const one = Array.from({ length: 6 }, (_, position) => (position === at + 1 ? wave(3) : wave(2)));
      assert.deepEqual(await found(...files(one)), [`3 warning ${reason}`]);
    }
    const { errors } = await validateTexts({ "a.yaml": [binding(wave(-1)), shop(wave(2))].join("---\n") });
    assert.match(
      errors[0]?.message ?? "",
      /^metadata\.annotations\["argocd\.argoproj\.io\/sync-wave"\]: .* in sync wave -1, before its target Shop team\/shop in sync wave 2: .*put the binding into sync wave 2 or a later one$/,
    );
  });

  it("compares phases before waves, and ignores an optional source and the objects of another namespace", async () => {
    const hook = (phase: string) => annotated(`argocd.argoproj.io/hook: ${phase}`);
    assert.deepEqual(await found(binding(wave(5)), shop(hook("PreSync"))), []);
    assert.deepEqual(await found(binding(wave(5)), shop(hook("PostSync"))), ["3 warning TargetNotFound"]);
    assert.deepEqual(await found(binding("", "optional: true, secret: {name: bucket}"), secret(wave(1))), []);
    assert.deepEqual(await found(binding(""), shop(wave(1)).replace("namespace: team", "namespace: other")), []);
  });

  it("warns of a binding before a workload that its rollout names, but not before one that it selects", async () => {
    const web = `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: team, ${wave(2)}}\n`;
    const rolling = (rollout: string) => `${binding(wave(1))}  rollout: ${rollout}\n`;
    assert.deepEqual(await found(rolling("{targets: [{kind: Deployment, name: web}]}"), web), [
      "3 warning WorkloadNotFound",
    ]);
    assert.deepEqual(await found(rolling("{consumersOf: [bucket]}"), web), []);
  });
});
