/** The settings that `inlay gitops` prints, with the paths of Argo CD run by jq. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import { analyse } from "../../../src/render/analysis.ts";
import { argocdSnippet, fluxSnippet, jqPath } from "../../../src/render/gitops-snippets.ts";
import { gitopsText, substituted, type WrittenObjects, writtenObjects } from "../../../src/render/written-objects.ts";
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

const shop = (spec: string, metadata = "") =>
  `\napiVersion: example.com/v1\nkind: Shop\nmetadata: {name: shop, namespace: team${metadata}}\nspec: ${spec}\n`;

async function analysed(...texts: string[]) {
  const files = texts.map((text, at) => ({ name: `${at}.yaml`, text }));
  const analysis = await analyse(files, "default", [], { ownOnly: true });
  assert.deepEqual(analysis.mistakes, []);
  return analysis;
}
const written = async (...texts: string[]): Promise<WrittenObjects> => writtenObjects(await analysed(...texts));
const root = join(import.meta.dirname, "..", "..", "..");
const inlay = (...args: string[]) => promisify(execFile)(process.execPath, [join(root, "src", "main.ts"), ...args]);

describe("the settings for GitOps tools", () => {
  before(useTools);

  it("are empty for fields that git does not have, and say that there is nothing to ignore", async () => {
    const found = await written(binding("a", target(["spec.key", "spec.map[name=x].token"])), shop("{map: []}"), CRD);
    assert.deepEqual(argocdSnippet(found), { spec: {} });
    const { kustomization, helmRelease } = fluxSnippet(found);
    assert.deepEqual([Object.keys(kustomization.spec), helmRelease], [["healthChecks", "healthCheckExprs"], undefined]);
    assert.deepEqual(gitopsText(found, 80), [
      "the bindings write no field that the files have, so there is nothing to ignore",
    ]);
  });

  it("have a note for objects that are not in the files, named and selected ones", async () => {
    const selecting = target(["spec.key"], "selector: {matchLabels: {tier: gold}}");
    const { objects, notes } = await written(binding("a", `${target(["spec.key"])}, ${selecting}`));
    assert.deepEqual(objects, []);
    assert.match(notes.join("\n"), /^Shop team\/shop is not in the files; .*\nno Shop in the files is selected by /);
  });

  it("name the placeholders in git for the fields of all bindings of an object, and the bindings", async () => {
    const found = await written(
      binding("a", target(["spec.key", "spec.other"])),
      binding("b", target(['metadata.annotations["x.io/y"]'])),
      shop("{key: placeholder}", ", annotations: {x.io/y: placeholder}"),
    );
    assert.deepEqual(argocdSnippet(found).spec, {
      ignoreDifferences: [
        {
          group: "example.com",
          kind: "Shop",
          namespace: "team",
          name: "shop",
          jqPathExpressions: [".spec.key", '.metadata.annotations["x.io/y"]'],
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
    assert.deepEqual(helmRelease?.spec.driftDetection, { mode: "enabled", ignore: [ignored] });
    assert.match(kustomization.spec.patches?.[0]?.patch ?? "", /ssa: Merge\n$/);
    assert.match(gitopsText(found, Infinity).join("\n"), /Shop team\/shop +spec\.key +team\/a, team\/b/);
  });

  it("say that a binding needs onConflict: Force for a placeholder, unless it has it", async () => {
    const texts = (more: string) => [binding("a", target(["spec.key"], `name: shop${more}`)), shop("{key: x}")];
    const { notes } = await written(...texts(""));
    assert.match(
      notes.join("\n"),
      /^Shop team\/shop: git has a placeholder for spec\.key, .*Conflict; set onConflict: Force on the target Shop of SecretBinding team\/a$/,
    );
    assert.deepEqual((await written(...texts(", onConflict: Force"))).notes, []);
  });

  it("name all of an atomic list that git has if its CRD is in the files, and else say what to do", async () => {
    const texts = [
      binding("a", target(["spec.list[name=x].token", "spec.map[name=x].token"], "name: shop, onConflict: Force")),
      shop("{list: [{name: x}], map: [{name: x, token: y}]}"),
    ];
    const known = await written(...texts, CRD);
    assert.deepEqual(known.objects[0]?.paths, ["spec.list", "spec.map[name=x].token"]);
    assert.match(known.notes.join("\n"), /^Shop team\/shop spec\.list: .*remove all of it from git/);
    assert.match(fluxSnippet(known).kustomization.spec.patches?.[0]?.patch ?? "", /ssa: IfNotPresent\n$/);
    assert.deepEqual(fluxSnippet(known).kustomization.spec.ignore?.[0]?.paths, ["/spec/list"]);
    const unknown = await written(...texts);
    assert.deepEqual(unknown.objects[0]?.paths, ["spec.map[name=x].token"]);
    assert.equal(unknown.notes.filter((note) => note.includes("add the CRD with --crds")).length, 2);
  });

  it("have the health checks of deploy/flux for the objects of Inlay in the files", async () => {
    const file = await readFile(join(root, "deploy", "flux", "kustomization.yaml"), "utf8");
    const [, example] = parseAllDocuments(file).map((document) => document.toJS());
    const [ofBindings] = example.spec.healthCheckExprs;
    const connection =
      "apiVersion: inlay.dev/v1alpha1\nkind: VaultConnection\nmetadata: {name: vault, namespace: team}\nspec: {address: 'https://vault.example.com'}";
    const { spec } = fluxSnippet(await written(binding("a", target(["spec.key"])), connection)).kustomization;
    assert.deepEqual(
      spec.healthChecks.map(({ kind, namespace, name }) => [kind, namespace, name]),
      [
        ["SecretBinding", "team", "a"],
        ["VaultConnection", "team", "vault"],
      ],
    );
    assert.deepEqual(spec.healthCheckExprs, [ofBindings, { ...ofBindings, kind: "VaultConnection" }]);
  });

  it("say for Flux which objects of Inlay contain a text that postBuild replaces", async () => {
    const script = `{path: spec.key, template: '{{! text }}$\{HOME}/bin'}`;
    const withScript = binding("b", target([])).replace("fields: []", `fields: [${script}]`);
    const notes = substituted(await analysed(binding("a", target(["spec.key"])), withScript));
    assert.equal(notes.length, 1);
    assert.match(notes[0] ?? "", /^SecretBinding team\/b contains .*substitute: disabled$/);
  });

  it("use CRDs that are not among the applied files", async () => {
    const folder = await mkdtemp(join(tmpdir(), "inlay-gitops-"));
    try {
      const [applied, crd] = [join(folder, "a.yaml"), join(folder, "crd.yaml")];
      const texts = [binding("a", target(["spec.list[name=x].token"])), shop("{list: [{name: x}]}")];
      await writeFile(applied, texts.join("---"));
      await writeFile(crd, CRD);
      const { stdout, stderr } = await inlay("gitops", "argocd", "-f", applied, "--crds", crd, "-o", "json");
      assert.deepEqual(JSON.parse(stdout).spec.ignoreDifferences[0].jqPathExpressions, [".spec.list"]);
      assert.match(stderr, /^note: Shop team\/shop spec\.list: one value for the API server/);
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
