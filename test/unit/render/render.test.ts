/** The rendering of files: the bindings that compositions create, and the fields that bindings would write, before and after. */
import assert from "node:assert/strict";
import { renderingText } from "../../../src/render/rendering-text.ts";
import { renderTexts } from "./texts.ts";

const COMPOSITION = `
apiVersion: inlay.dev/v1alpha1
kind: BindingComposition
metadata: {name: shops}
spec:
  for:
    apiVersion: example.com/v1
    kind: Shop
    selector: {exceptNames: [none*]}
    namespaceSelector: {names: [team-*], matchLabels: {shops: "yes"}}
  bindings:
    - name: db
      base:
        spec:
          sources:
            - {name: db, secret: {}}
            - {name: settings, configMap: {name: settings}, optional: true}
          targets:
            - apiVersion: example.com/v1
              kind: Shop
              fields:
                - {path: spec.port, from: {source: db, key: port}}
                - {path: spec.note, from: {source: settings, key: note}}
      patches:
        - {fromFieldPath: metadata.name, toFieldPath: "spec.targets[0].name"}
        - {fromFieldPath: spec.secret, toFieldPath: "spec.sources[0].secret.name", policy: {fromFieldPath: Required}}
        - {fromFieldPath: spec.unset, toFieldPath: "metadata.labels[unset]"}
`;
const shop = (name: string, namespace: string, spec = "{secret: db, port: 1}") =>
  `apiVersion: example.com/v1\nkind: Shop\nmetadata: {name: ${name}, namespace: ${namespace}, uid: uid-${name}}\nspec: ${spec}\n---\n`;
const secret = (namespace: string, data = "{port: '5432'}") =>
  `apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: ${namespace}}\nstringData: ${data}\n---\n`;
const CRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.example.com}
spec:
  group: example.com
  names: {kind: Shop, plural: shops}
  scope: Namespaced
  versions:
    - name: v1
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties: {secret: {type: string}, port: {type: integer}, note: {type: string}}
---
`;
const grant = (name: string, from: string) => `
apiVersion: inlay.dev/v1alpha1
kind: SecretGrant
metadata: {name: ${name}, namespace: team-a}
spec: {from: [${from}], to: [{kind: Secret, name: db}]}
---
`;

const namesOf = ({ bindings }: Awaited<ReturnType<typeof renderTexts>>) =>
  bindings.map(
    ({ binding }) =>
      `${(binding.metadata as { namespace: string }).namespace}/${(binding.metadata as { name: string }).name}`,
  );

describe("a rendering", () => {
  it("contains the complete binding of each claim, and no other", async () => {
    const namespaces = ["a", "b"].map(
      (name) =>
        `apiVersion: v1\nkind: Namespace\nmetadata: {name: team-${name}, labels: {shops: "${name === "a" ? "yes" : "no"}"}}\n---\n`,
    );
    const claims = [
      shop("shop", "team-a"),
      shop("none-at-all", "team-a"),
      shop("labelled", "team-b"),
      shop("unknown", "team-c"),
      shop("elsewhere", "other"),
    ];
    const seen = await renderTexts({ c: COMPOSITION, o: [...claims, ...namespaces].join("") });
    assert.deepEqual(namesOf(seen), ["team-a/shop-db", "team-c/unknown-db"]);
    assert.equal(seen.notes.filter((note) => note.includes("team-c")).length, 1);
    const [{ binding, composition, claim, entry } = assert.fail()] = seen.bindings;
    assert.deepEqual([composition, claim, entry], ["shops", "Shop team-a/shop", "db"]);
    const { labels, annotations, ownerReferences } = binding.metadata as Record<string, object>;
    assert.deepEqual(ownerReferences, [{ apiVersion: "example.com/v1", kind: "Shop", name: "shop", uid: "uid-shop" }]);
    assert.deepEqual(Object.keys({ ...labels, ...annotations }).sort(), [
      "inlay.dev/claim",
      "inlay.dev/claim-uid",
      "inlay.dev/composition",
      "inlay.dev/composition-binding",
      "inlay.dev/patched-fields",
    ]);
    assert.deepEqual(binding.spec.sources[0], { name: "db", secret: { name: "db", granted: true } });
    assert.equal(binding.spec.serviceAccountName, "inlay");
  });

  it("notes a backslash and YAML that may mean something else, and writes the value nevertheless", async () => {
    const binding = `apiVersion: inlay.dev/v1alpha1
kind: SecretBinding
metadata: {name: note, namespace: team-a}
spec:
  sources: [{secret: {name: db}}]
  targets:
    - apiVersion: v1
      kind: ConfigMap
      name: notes
      create: {manifest: {}}
      fields: [{path: data.a, template: 'CORP\\{{db.port}}'}, {path: data.b, from: {source: db, key: port}, as: yaml}]
---
`;
    const { bindings } = await renderTexts({ o: binding + secret("team-a", "{port: '22:22'}") });
    const [target = assert.fail()] = bindings[0]?.targets ?? [];
    assert.ok(target.written);
    for (const says of [/^data\.a: .*write \\\\\{\{db\.port\}\}$/, /^data\.b: .*YAML 1\.1/])
      assert.equal(target.notes.filter((note) => says.test(note)).length, 1);
  });

  it("notes a patch whose field the claim lacks, unless the field is optional", async () => {
    const shown = async (composition: string) =>
      (await renderTexts({ c: composition, o: shop("shop", "team-a") })).bindings[0]?.notes.filter((each) =>
        each.includes("patches"),
      );
    const notes = (await shown(COMPOSITION)) ?? [];
    assert.equal(notes.length, 1);
    assert.match(notes[0] ?? "", /^bindings\[db\]\.patches\[2\]: .*spec\.unset/);
    const optional = COMPOSITION.replace('labels[unset]"', "$&, policy: {onMissing: Remove}");
    assert.deepEqual(await shown(optional), []);
  });

  it("has no binding for a claim without a required field, or with the name of another binding", async () => {
    const second = COMPOSITION.replace("{name: shops}", "{name: second}");
    const claims = shop("shop", "team-a") + shop("waits", "team-a", "{}");
    const { notMade, mistakes } = await renderTexts({ a: COMPOSITION, b: second, c: claims });
    assert.deepEqual(
      notMade.map(({ composition, claim, reason }) => [composition, claim, reason]),
      [
        ["shops", "Shop team-a/waits", "FieldNotFound"],
        ["second", "Shop team-a/shop", "NameTaken"],
        ["second", "Shop team-a/waits", "FieldNotFound"],
      ],
    );
    assert.deepEqual(
      mistakes.map(({ file, line }) => [file, line]),
      [["b", 13]],
    );
  });

  it("shows values before and after, with the types of the CRD, and hides them by default", async () => {
    const files = { c: COMPOSITION, o: CRD + shop("shop", "team-a") + secret("team-a") };
    const fieldsOf = async (showValues: boolean) =>
      (await renderTexts(files, { showValues })).bindings[0]?.targets[0]?.fields;
    const [shown, hidden] = await Promise.all([fieldsOf(true), fieldsOf(false)]);
    assert.deepEqual(shown?.[0], { path: "spec.port", from: ["db/port"], before: 1, value: 5432, changes: true });
    assert.deepEqual(hidden?.[0], {
      path: "spec.port",
      from: ["db/port"],
      before: "(hidden)",
      value: "(hidden)",
      changes: true,
    });
    assert.equal(shown?.[1]?.problem?.reason, "SourceNotFound");
    assert.doesNotMatch(JSON.stringify(await renderTexts(files)), /5432/);
    const { mistakes, bindings } = await renderTexts({
      c: COMPOSITION,
      o: CRD + shop("shop", "team-a") + secret("team-a", "{port: QXZJ}"),
    });
    assert.deepEqual(
      mistakes.map(({ file, line }) => [file, line]),
      [["c", 22]],
    );
    assert.deepEqual(
      bindings[0]?.targets.map(({ written, problem }) => [written, problem?.reason]),
      [[false, "InvalidValue"]],
    );
    assert.doesNotMatch(JSON.stringify([mistakes, bindings]), /QXZJ/);
  });

  it("marks a target that is written after the rollout, whether or not it may be written", async () => {
    const fields = "fields: [{path: data.id, from: {source: db, key: id}}]";
    const binding = (when: string) => `
apiVersion: inlay.dev/v1alpha1
kind: SecretBinding
metadata: {name: shop, namespace: team-a}
spec:
  acknowledge: [ReadableCopies]
  sources: [{secret: {name: db}}]
  targets:
    - {apiVersion: v1, kind: ConfigMap, name: record, ${when}${fields}}
    - {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, name: forbidden, ${when}${fields}}
  rollout: {consumersOf: [db]}
---
`;
    const seen = async (when: string) => {
      const rendering = await renderTexts({ b: binding(when), s: secret("team-a", "{id: a}") });
      const headings = renderingText(rendering, 120).filter((line) => line.includes("TARGET"));
      return { whens: rendering.bindings[0]?.targets.map((target) => target.when), headings };
    };
    const after = await seen("when: AfterRollout, ");
    assert.deepEqual(after.whens, ["AfterRollout", "AfterRollout"]);
    assert.deepEqual(after.headings, [
      "  TARGET ConfigMap team-a/record (v1, not in the files, after the rollout)",
      "  TARGET Role forbidden (rbac.authorization.k8s.io/v1, not in the files, after the rollout)",
    ]);
    const before = await seen("");
    assert.deepEqual(before.whens, [undefined, undefined]);
    assert.doesNotMatch(before.headings.join(), /rollout/);
  });

  it("reports missing values, and writes nothing to their target, without a mistake", async () => {
    for (const [more, reason] of [
      ["", "SourceNotFound"],
      [secret("team-a", "{host: a}"), "KeyNotFound"],
    ] as const) {
      const { bindings, mistakes } = await renderTexts({ c: COMPOSITION, o: shop("shop", "team-a") + more });
      const [target] = bindings[0]?.targets ?? [];
      assert.deepEqual([target?.written, target?.problem?.reason], [false, reason]);
      assert.deepEqual(mistakes, []);
    }
  });

  it("reads the sources that a grant in the files permits, and all sources without grants", async () => {
    const files = { c: COMPOSITION, o: shop("shop", "team-a") + secret("team-a") };
    for (const [from, reason] of [
      ["{composition: shops}", undefined],
      ["{namespace: team-a}", undefined],
      ["{composition: others}", "NotGranted"],
      ["{namespaceSelector: {names: ['*']}}", "NotGranted"],
    ] as const) {
      const { bindings } = await renderTexts({ ...files, g: grant("one", from) });
      assert.equal(bindings[0]?.targets[0]?.problem?.reason, reason, from);
      assert.equal(bindings[0]?.grants, undefined);
    }
    const { bindings } = await renderTexts(files);
    assert.equal(bindings[0]?.targets[0]?.written, true);
    assert.equal(bindings[0]?.grants?.length, 1);
  });

  it("shows the keys that include and exclude select", async () => {
    const binding = `
apiVersion: inlay.dev/v1alpha1
kind: SecretBinding
metadata: {name: copies}
spec:
  sources: [{secret: {name: db}}]
  targets:
    - apiVersion: v1
      kind: ConfigMap
      name: settings
      fields: [{path: data, from: {source: db, include: ["^p"], exclude: ["word$"]}}]
    - apiVersion: v1
      kind: ConfigMap
      name: none
      create: {manifest: {}}
      fields: [{path: data, from: {source: db, exclude: ["[.]", ".a?"]}}]
`;
    const there = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: team}\ndata: {port: "1"}\n---\n`;
    const { bindings } = await renderTexts(
      { b: binding, o: there, s: secret("team", "{port: '5432', path: /a, password: hunter2, user: x}") },
      { showValues: true, namespace: "team" },
    );
    const fields = bindings[0]?.targets.map(({ written, fields: [field] }) => [written, field]);
    assert.deepEqual(fields, [
      [
        true,
        {
          path: "data",
          from: ["db (keys that match ^p, but not word$)"],
          before: { port: "1" },
          value: { port: "5432", path: "/a" },
          changes: true,
        },
      ],
      [
        false,
        {
          path: "data",
          from: ["db (keys that do not match .a? or [.])"],
          problem: {
            reason: "KeyNotFound",
            message: "data: Secret team/db has no key that passes include and exclude; add it, or correct the binding",
          },
        },
      ],
    ]);
  });

  it("shows a binding in the files, with the objects that it selects and creates", async () => {
    const binding = `
apiVersion: inlay.dev/v1alpha1
kind: SecretBinding
metadata: {name: copies}
spec:
  sources: [{secret: {name: db}}]
  targets:
    - apiVersion: example.com/v1
      kind: Shop
      selector: {matchExpressions: [{key: tier, operator: NotIn, values: [gold, silver]}]}
      fields: [{path: "spec.list[name=a].value", from: {source: db, key: port}}]
    - apiVersion: v1
      kind: Secret
      name: copy
      create: {adopt: Equal, manifest: {type: Opaque}}
      fields: [{path: data.port, from: {source: db, key: port}}]
`;
    const own = `
apiVersion: example.com/v1
kind: Shop
metadata: {name: a, namespace: team}
spec: {list: [{name: a, value: "5432"}]}
---
apiVersion: example.com/v1
kind: Shop
metadata: {name: b, namespace: team}
spec: {list: []}
---
apiVersion: example.com/v1
kind: Shop
metadata: {name: c, namespace: team, labels: {tier: gold}}
`;
    const { bindings } = await renderTexts(
      { b: binding, o: own, s: secret("team") },
      { showValues: true, namespace: "team" },
    );
    assert.deepEqual(
      bindings[0]?.targets.map(({ name, creates, adopts, written, problem, fields: [field] }) => [
        name,
        creates,
        adopts,
        written,
        problem?.reason,
        field?.value,
        field?.changes,
      ]),
      [
        ["a", false, undefined, true, undefined, "5432", false],
        ["b", false, undefined, false, "ElementNotFound", undefined, undefined],
        ["copy", true, "Equal", true, undefined, Buffer.from("5432").toString("base64"), undefined],
      ],
    );
  });

  it("shows what whole copies take from their sources: the type, labels and binaryData", async () => {
    const target = (kind: string, source: string, create: string) => `
    - {apiVersion: v1, kind: ${kind}, name: copy, create: ${create}, fields: [{path: data, from: {source: ${source}}}]}`;
    const binding = `
apiVersion: inlay.dev/v1alpha1
kind: SecretBinding
metadata: {name: copies}
spec:
  sources: [{secret: {name: login}}, {configMap: {name: settings}}]
  targets:${target("Secret", "login", "{manifest: {}, copy: {labels: ['t*']}}")}${target("ConfigMap", "settings", "{manifest: {}}")}
---
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: team, labels: {team: web, other: x}}
type: kubernetes.io/basic-auth
stringData: {password: p}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: team}
data: {level: info}
binaryData: {icon: /w==}
`;
    const { bindings } = await renderTexts({ b: binding }, { showValues: true, namespace: "team" });
    assert.deepEqual(
      bindings[0]?.targets.map(({ fields }) => fields.map(({ path, value, from }) => [path, value, ...from])),
      [
        [
          ["data", { password: Buffer.from("p").toString("base64") }, "login"],
          ["type", "kubernetes.io/basic-auth", "login"],
          ["metadata.labels.team", "web", "login"],
        ],
        [
          ["data", { level: "info" }, "settings"],
          ["binaryData", { icon: "/w==" }, "settings"],
        ],
      ],
    );
  });

  it("uses the versions of a SecretProviderClass that pods in the files report", async () => {
    const report = (pod: string, version: string) => `
apiVersion: secrets-store.csi.x-k8s.io/v1
kind: SecretProviderClassPodStatus
metadata: {name: ${pod}, namespace: team-a}
status: {secretProviderClassName: db, objects: [{id: port, version: ${version}}]}
---
`;
    const binding = `
apiVersion: inlay.dev/v1alpha1
kind: SecretBinding
metadata: {name: versions, namespace: team-a}
spec:
  sources: [{providerClass: {name: db}}]
  targets:
    - {apiVersion: v1, kind: ConfigMap, name: seen, fields: [{path: data.port, from: {source: db, key: port}}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: seen, namespace: team-a}
`;
    const { bindings, mistakes } = await renderTexts(
      { all: report("web-1", "v2") + report("web-2", "v1") + binding },
      { showValues: true },
    );
    assert.deepEqual(mistakes, []);
    assert.deepEqual(bindings[0]?.targets[0]?.fields[0]?.value, "v1\nv2");
  });
});
