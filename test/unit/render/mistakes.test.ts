/** A rendering finds every mistake in the files, each with its file and line, and quotes no value. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { renderTexts } from "./texts.ts";

/** The lines of the mistakes in one file. Each line of the text with `#!` is expected to contain one. */
async function assertMarked(text: string, others: Record<string, string> = {}): Promise<string[]> {
  const { mistakes } = await renderTexts({ "a.yaml": text, ...others });
  const marked = text.split("\n").flatMap((line, at) => (line.includes("#!") ? [at + 1] : []));
  const found = [...new Set(mistakes.filter(({ file }) => file === "a.yaml").map(({ line }) => line))];
  assert.deepEqual(found, marked, mistakes.map(({ line, message }) => `${line}: ${message}`).join("\n"));
  return mistakes.map(({ message }) => message);
}

const COMPOSITION = `
apiVersion: inlay.dev/v1alpha1
kind: BindingComposition
metadata: {name: shop}
spec:
  for: {apiVersion: example.com/v1, kind: Shop}
`;
const BASE = `      base:
        spec:
          sources: [{secret: {name: bucket}}]
          targets:
            - {apiVersion: example.com/v1, kind: Shop, name: shop, fields: [{path: spec.a, from: {source: bucket, key: a}}]}
`;

describe("the mistakes in files", () => {
  it("are found in parts that match the schema, although another part does not", () =>
    assertMarked(`${COMPOSITION}
  reech: Cluster #!
  bindings:
    - name: a
      ${BASE.trim()}
      patches: [{fromFieldPath: spec.a, type: Unheard}] #!
---
apiVersion: inlay.dev/v1alpha1
kind: SecretBinding
metadata: {name: a}
spec:
  suspend: maybe #!
  sources: [{secret: {name: bucket}}, null] #!
  targets: [] #!
---
apiVersion: inlay.dev/v1alpha1
kind: SecretBinding
metadata: {name: b}
spec:
  suspend: maybe #!
  sources: [{secret: {name: bucket}}]
  targets:
    - {apiVersion: v1, kind: ConfigMap, name: a, fields: [{path: status, template: x}]} #!
`).then(() => undefined));

  it("are found in a rollout, its steps, and the targets after it", () =>
    assertMarked(`
apiVersion: inlay.dev/v1alpha1
kind: SecretBinding
metadata: {name: a}
spec:
  sources: [{secret: {name: bucket}}]
  targets:
    - apiVersion: v1
      kind: ConfigMap
      name: record
      when: Later #!
      fields: [{path: data.id, from: {source: bucket, key: id}}]
  rollout:
    onFirstSync: IfChanged #!
    steps:
      - name: clones
        consumersOfTarget: true #!
        consumersOfTargets: "yes" #!
        consumersBy: [Env, Envfrom] #!
        targets:
          - {kind: Deployment, name: proxy, namespaces: edge} #!
          - {kind: Deployment, name: proxy, namespace: Edge} #!
---
apiVersion: inlay.dev/v1alpha1
kind: SecretBinding
metadata: {name: b}
spec:
  sources: [{secret: {name: bucket}}]
  targets:
    - apiVersion: v1
      kind: ConfigMap
      name: record
      when: AfterRollout
      fields: [{path: data.id, from: {source: bucket, key: id}}]
  rollout: #!
    onFirstSync: IfDifferent
    consumersOf: [bucket]
    consumersOfTargets: true
    consumersBy: [Env, EnvFrom, Volume, SubPath, Projected, ImagePullSecret, CSI]
    targets: [{kind: Deployment, name: proxy, namespace: edge}]
`).then(() => undefined));

  it("are all found in a composition, even several in one patch", () =>
    assertMarked(`${COMPOSITION}
  patchSets:
    - name: common
      patches:
        - type: Unheard #!
  bindings:
    - name: first
      patches:
        - fromFieldPath: spec.a..b #!
          toFieldPath: status.a #!
          policy: {fromFieldPath: Always} #!
          transforms:
            - {type: string, string: {type: Format, fmt: "%s"}}
            - {type: unheard} #!
        - type: PatchSet
          patchSetName: unknown #!
        - fromFieldPath: spec.fine
          toFieldPath: spec.sources[0].secret.name
        - fromFieldPath: spec.account
          toFieldPath: spec.serviceAccountName #!
      ${BASE.trim()}
    - name: second
      connectionDetails: [] #!
      base:
        metadata:
          lables: {} #!
          labels:
            inlay.dev/mine: "yes" #!
        spec:
          sources:
            - secrt: {name: bucket} #!
          targets:
            - apiVersion: 7 #!
              kind: Shop
              fields:
                - path: spec.a
                  as: float #!
`));

  it("are all found in a binding: in its schema, paths and templates", () =>
    assertMarked(`
apiVersion: inlay.dev/v1alpha1
kind: SecretBinding
metadata: {name: Upper} #!
spec:
  requireSame: a
  sources: [] #!
  targets:
    - apiVersion: v1 #!
      kind: ConfigMap
---
apiVersion: inlay.dev/v1alpha1
kind: SecretBinding
metadata:
  name: typed
  labels:
    on: true #!
spec:
  sources:
    - secret: {} #!
    - name: none #!
    - configMap: {name: c, optinal: true} #!
  targets:
    - apiVersion: v1
      kind: ConfigMap
      name: c
      onConflict: Fight #!
      fields:
        - path: 5 #!
          template: x
---
apiVersion: inlay.dev/v1alpha1
kind: SecretBinding
metadata: {name: written}
spec:
  sources:
    - secret: {name: bucket}
  targets:
    - apiVersion: example.com/v1
      kind: Shop
      name: shop
      fields:
        - path: spec.a..b #!
          template: x
        - path: status.a #!
          template: x
        - path: spec.fine
          template: "{{bucket.a" #!
        - path: spec.c #!
          from: {source: buket}
        - path: spec.e #!
          from: {source: bucket, include: [a], exclude: ["b", "("]}
        - path: spec.d
          from: {source: bucket, key: a}
    - apiVersion: rbac.authorization.k8s.io/v1 #!
      kind: Role
      name: admin
      fields: [{path: rules, template: x}]
`).then(() => undefined));

  it("are found in YAML, and in objects of any kind", async () => {
    await assertMarked(`a: [1
b: 2 #!
`);
    await assertMarked(`
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data:
  a: "1"
  a: "2" #!
`);
    await assertMarked(`
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
data:
  number: 1 #!
  flag: yes #!
  text: "1"
---
apiVersion: v1
kind: Secret
metadata: #!
  namespace: a
---
just a text #!
---
apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: Secret
    metadata: {name: a}
    data:
      plain: a-b #!
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: one}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: default}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: two}} #!
---
apiVersion: inlay.dev/v1 #!
kind: SecretBinding
metadata: {name: a}
---
apiVersion: inlay.dev/v1alpha1
kind: SecretBindng #!
metadata: {name: a}
`);
  });

  it("are reported at the claim's field that a patch rejects, and at no claim without that field", async () => {
    const composition = `${COMPOSITION}
  bindings:
    - name: a
      patches:
        - {fromFieldPath: spec.size, toFieldPath: "spec.targets[0].name", transforms: [{type: map, map: {small: s}}]}
        - {fromFieldPath: spec.where, toFieldPath: "spec.targets[0].namespace"}
      ${BASE.trim()}
`;
    const messages = await assertMarked(
      `
apiVersion: example.com/v1
kind: Shop
metadata: {name: right, namespace: team}
spec: {size: small}
---
apiVersion: example.com/v1
kind: Shop
metadata: {name: wrong, namespace: team}
spec:
  size: [huge] #!
  where: elsewhere #!
`,
      { "b.yaml": composition },
    );
    assert.ok(messages.every((each) => each.startsWith("Shop team/wrong: bindings[a].patches[")));
  });

  it("are reported without values of Secrets", async () => {
    const value = fc.string({ unit: fc.constantFrom(..."QXZJ0123456789#%"), minLength: 12, maxLength: 40 });
    const shape = fc.constantFrom<(value: string) => string>(
      (v) => `data: {a: "${v}-"}`,
      (v) => `data: {a: *${v}}`,
      (v) => `data: {a: !${v} b}`,
      (v) => `data: [${v}, "${v}\\q"]`,
      (v) => `stringData: {a: {b: "${v}"}}`,
      (v) => `stringData:\n  a: "${v}\n b`,
      (v) => `stringData:\n\ta: ${v}\n  b: "${v}": c`,
      (v) => `type: ["${v}"`,
    );
    let count = 0;
    await fc.assert(
      fc.asyncProperty(value, shape, async (v, spoil) => {
        const text = `apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n${spoil(v)}\n`;
        const { mistakes } = await renderTexts({ "a.yaml": text });
        count += mistakes.length;
        const said = JSON.stringify(mistakes);
        for (let at = 0; at + 6 <= v.length; at++) assert.ok(!said.includes(v.slice(at, at + 6)), said);
      }),
      { numRuns: 300 },
    );
    assert.ok(count > 200, `${count} mistakes`);
  });
});
