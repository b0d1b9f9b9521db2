/** The settings that `inlay gitops` prints, with the paths of Argo CD run by jq. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import { readDocuments } from "../../../src/render/documents.ts";
import { argocdSnippet, fluxSnippet, jqPath } from "../../../src/render/gitops-snippets.ts";
import { gitopsText } from "../../../src/render/gitops-text.ts";
import { kindsOf } from "../../../src/render/kinds.ts";
import { render } from "../../../src/render/render.ts";
import { type WrittenObjects, writtenObjects } from "../../../src/render/written-objects.ts";
import { useTools, withoutPath } from "../../gitops/tools.ts";

const binding = (name: string, targets: string) => `
apiVersion: inlay.dev/v1alpha1
kind: SecretBinding
metadata: {name: ${name}, namespace: team}
spec:
  sources: [{secret: {name: bucket}}]
  targets: [${targets}]
`;
const target = (fields: string[], more = "name: shop") =>
  `{apiVersion: example.com/v1, kind: Shop, ${more}, fields: [${fields.map((path) => `{path: '${path}', from: {source: bucket, key: a}}`).join(", ")}]}`;
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
              properties:
                key: {type: string}
                list: {type: array, items: {type: object, properties: {name: {type: string}, token: {type: string}}}}
                map: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {name: {type: string}, token: {type: string}}}}
`;

async function written(...texts: string[]): Promise<WrittenObjects> {
  const files = texts.map((text, at) => ({ name: `${at}.yaml`, text }));
  const rendering = await render(files, "default");
  assert.deepEqual(rendering.mistakes, []);
  return writtenObjects(rendering, kindsOf(readDocuments(files).documents.map(({ object }) => object)));
}

describe("the settings for GitOps tools", () => {
  before(useTools);

  it("name all objects of a kind for a selector that matches no object in the files, or those with the name of the target", async () => {
    const found = await written(
      binding(
        "a",
        [
          target(["spec.key"], "selector: {matchLabels: {tier: gold}}"),
          target(["spec.token"], "name: shop, namespaceSelector: {matchLabels: {team: a}}"),
        ].join(", "),
      ),
    );
    assert.deepEqual(
      argocdSnippet(found).spec.ignoreDifferences.map(({ name, namespace, jqPathExpressions }) => [
        name,
        namespace,
        jqPathExpressions,
      ]),
      [
        [undefined, undefined, [".spec.key"]],
        ["shop", undefined, [".spec.token"]],
      ],
    );
    assert.match(gitopsText(found, 80).join("\n"), /every Shop +spec\.key .*\nShop shop +spec\.token/);
  });

  it("say that there is nothing to ignore", async () => {
    const found = await written(binding("a", "").replace("targets: []", "rollout: {consumersOf: [bucket]}"));
    assert.deepEqual(gitopsText(found, 80), [
      "the bindings write no field of an object in git, so there is nothing to ignore",
    ]);
  });

  it("name the fields of all bindings of an object, and their field managers", async () => {
    const found = await written(
      binding("a", target(["spec.key"])),
      binding("b", target(['metadata.annotations["x.io/y"]'])),
    );
    assert.deepEqual(argocdSnippet(found).spec, {
      ignoreDifferences: [
        {
          group: "example.com",
          kind: "Shop",
          namespace: "team",
          name: "shop",
          jqPathExpressions: [".spec.key", '.metadata.annotations["x.io/y"]'],
          managedFieldsManagers: ["inlay/team/a", "inlay/team/b"],
        },
      ],
      syncPolicy: { syncOptions: ["RespectIgnoreDifferences=true", "ServerSideApply=true"] },
    });
    const { kustomization, helmRelease } = fluxSnippet(found);
    const ignored = {
      paths: ["/spec/key", "/metadata/annotations/x.io~1y"],
      target: { group: "example.com", kind: "Shop", namespace: "team", name: "shop" },
    };
    assert.deepEqual(kustomization.spec.ignore, [ignored]);
    assert.deepEqual(helmRelease.spec.driftDetection, { mode: "enabled", ignore: [ignored] });
    assert.match(kustomization.spec.patches[0]?.patch ?? "", /ssa: Merge\n$/);
    assert.deepEqual(
      kustomization.spec.healthChecks.map(({ name }) => name),
      ["a", "b"],
    );
    assert.match(gitopsText(found, Infinity).join("\n"), /Shop team\/shop +spec\.key +inlay\/team\/a/);
  });

  it("name all of an atomic list if its CRD is in the files, and else say what to do", async () => {
    const texts = [binding("a", target(["spec.list[name=x].token", "spec.map[name=x].token"]))];
    const known = await written(...texts, CRD);
    assert.deepEqual(known.objects[0]?.paths, ["spec.list", "spec.map[name=x].token"]);
    assert.match(known.notes.join("\n"), /^Shop spec\.list: .*remove all of it from git/);
    const unknown = await written(...texts);
    assert.deepEqual(unknown.objects[0]?.paths, ["spec.list[name=x].token", "spec.map[name=x].token"]);
    assert.equal(unknown.notes.filter((note) => note.includes("add the CRD with --crds")).length, 2);
    assert.match(fluxSnippet(unknown).kustomization.spec.patches[0]?.patch ?? "", /ssa: IfNotPresent\n$/);
    assert.deepEqual(fluxSnippet(unknown).kustomization.spec.ignore, []);
  });

  it("use CRDs that are not among the applied files", async () => {
    const folder = await mkdtemp(join(tmpdir(), "inlay-gitops-"));
    try {
      const [applied, crd] = [join(folder, "a.yaml"), join(folder, "crd.yaml")];
      await writeFile(applied, binding("a", target(["spec.list[name=x].token"])));
      await writeFile(crd, CRD);
      const program = join(import.meta.dirname, "..", "..", "..", "src", "main.ts");
      const args = [program, "gitops", "argocd", "-f", applied, "--crds", crd, "-o", "json"];
      const { stdout, stderr } = await promisify(execFile)(process.execPath, args);
      assert.deepEqual(JSON.parse(stdout).spec.ignoreDifferences[0].jqPathExpressions, [".spec.list"]);
      assert.match(stderr, /^note: Shop spec\.list: one value for the API server; remove all of it from git/);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("omit objects that a binding creates, and say so", async () => {
    const { objects, notes } = await written(binding("a", target(["spec.key"], "name: shop, create: {manifest: {}}")));
    assert.deepEqual(objects, []);
    assert.match(notes.join(), /Shop team\/shop: Inlay creates it; do not put it into git/);
  });

  it("have paths with which jq removes exactly the field", async () => {
    const object = {
      metadata: { annotations: { "x.io/y": "a", z: "b" } },
      spec: {
        "a-b": { c: 1, d: 2 },
        list: [
          { name: "x", port: 80, token: "t" },
          { name: "y", token: "u" },
        ],
      },
    };
    const removed = async (path: string) => withoutPath(jqPath(FieldPath.parse(path)), object);
    const without = (change: (copy: typeof object) => void) => {
      const copy = structuredClone(object);
      change(copy);
      return copy;
    };
    const same = async (path: string, change: (copy: typeof object) => void) =>
      assert.deepEqual(await removed(path), without(change), path);
    await same('metadata.annotations["x.io/y"]', ({ metadata }) =>
      Reflect.deleteProperty(metadata.annotations, "x.io/y"),
    );
    await same("spec.a-b.c", ({ spec }) => Reflect.deleteProperty(spec["a-b"], "c"));
    await same("spec.list[name=x,port=80].token", ({ spec }) => Reflect.deleteProperty(spec.list[0] ?? {}, "token"));
    await same("spec.list[1].token", ({ spec }) => Reflect.deleteProperty(spec.list[1] ?? {}, "token"));
    await same("spec.list", ({ spec }) => Reflect.deleteProperty(spec, "list"));
    await same("spec.none[name=x].token", () => {});
    await same("spec.none.deep[0].token", () => {});
  });
});
