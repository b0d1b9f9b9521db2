/** A restart field is checked against the kind's schema, with an example of the text that will be written. */
import assert from "node:assert/strict";
import type { RolloutSpec } from "../../../../src/api/rollout.ts";
import { FieldPath } from "../../../../src/apimachinery/field-path.ts";
import type { OpenApiSchema } from "../../../../src/apimachinery/openapi.ts";
import { wrongRestartField } from "../../../../src/rollout/decide/restart-field-schema.ts";
import { lookupOf, rolloutSpecOf } from "../../objects.ts";
import { DEPLOYMENTS, HARBORS } from "../../resources.ts";

const text = { type: "string" as const };
const object = (properties: Record<string, OpenApiSchema>): OpenApiSchema => ({ type: "object", properties });
const texts: OpenApiSchema = { type: "object", additionalProperties: text };
const anything: OpenApiSchema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
const root = object({
  metadata: { type: "object" },
  spec: object({
    restartAt: { ...text, pattern: "^[-0-9]+T[:0-9]+Z$" },
    trigger: { ...text, maxLength: 10 },
    nodes: { type: "integer" },
    image: object({ repository: text, tag: text }),
    initImage: text,
    serviceAccount: text,
    serviceAccountName: text,
    ServiceAccountName: text,
    account: object({ serviceAccount: object({ name: text, annotations: texts }) }),
    imageName: text,
    imageTag: text,
    images: object({ main: text }),
    podTemplateSpec: object({ nodeName: text, metadata: object({ annotations: texts }) }),
    podSpec: object({ nodeName: text }),
    workerPodSpec: object({ nodeName: text }),
    templateSpec: object({ nodeName: text }),
    after: { ...text, format: "date-time" },
    podAnnotations: texts,
    serviceLabels: texts,
    selector: object({ matchLabels: texts }),
    parameters: texts,
    mode: { ...text, enum: ["1-3fa9c1-09ab34de12"] },
    className: { ...text, pattern: "^[-a-z0-9]+$" },
    since: { ...text, pattern: "^[-0-9]+T" },
    port: { "x-kubernetes-int-or-string": true },
    open: anything,
    any: {},
    pods: object({ containers: { type: "array" }, restartAt: text, serviceAccountName: text, podLabels: texts }),
    template: object({ metadata: object({ annotations: texts }), spec: object({ serviceAccountName: text }) }),
  }),
});

async function wrong(
  path: string,
  value: RolloutSpec["stamp"]["value"] = "Revision",
  { isPublished = true, resource = HARBORS } = {},
): Promise<string | undefined> {
  const schemas = { of: async () => (isPublished ? { root, resolve: () => undefined } : undefined) };
  const lookup = lookupOf({ resource, paths: { restart: path }, stampAt: FieldPath.parse(path) });
  const spec = rolloutSpecOf({ stamp: { annotation: "inlay.dev/rollout", value } });
  const problem = await wrongRestartField(schemas, [lookup], spec);
  return problem?.reason;
}

describe("a restart field", () => {
  it("exists in the kind and accepts the written text", async () => {
    assert.equal(await wrong("spec.restartAt"), undefined);
    assert.equal(await wrong('metadata.annotations["restartedAt"]'), undefined);
    assert.equal(await wrong("spec.restart"), "UnknownField");
    assert.equal(await wrong("spec.nodes"), "TypeMismatch");
    assert.equal(await wrong("spec.trigger"), "InvalidValue");
    assert.equal(await wrong("spec.trigger", "ResourceVersion"), undefined);
  });

  it("is an annotation or a label, wherever it is, and whatever the schema says", async () => {
    for (const path of ["spec.podAnnotations", "spec.serviceLabels", "spec.pods.podLabels", "spec.open.annotations"])
      assert.equal(await wrong(`${path}["example.com/restart"]`), undefined, path);
    const [own, pods] = ['metadata.labels["a"]', 'spec.template.metadata.annotations["a"]'];
    for (const path of [own, pods]) {
      assert.equal(await wrong(path), undefined);
      assert.equal(await wrong(path, "Revision", { isPublished: false, resource: DEPLOYMENTS }), undefined);
    }
  });

  it("is a field that is declared as free text or a time", async () => {
    assert.equal(await wrong("spec.after", "Time"), undefined);
    assert.equal(await wrong("spec.since", "Time"), undefined);
    for (const path of ["spec.mode", "spec.className", "spec.open.restart", "spec.any"])
      assert.equal(await wrong(path), "ForbiddenPath", path);
    for (const path of ["spec.port", 'spec.parameters["a"]', 'spec.selector.matchLabels["a"]'])
      assert.equal(await wrong(path), "ForbiddenPath", path);
    assert.equal(await wrong("spec.restart", "Revision", { isPublished: false }), "ForbiddenPath");
    assert.equal(await wrong("spec.restartAt", "Revision", { isPublished: false }), undefined);
  });

  it("is not in a pod spec, and not in a built-in kind", async () => {
    for (const path of ["spec.pods.serviceAccountName", "spec.pods.restartAt", "spec.template.spec.serviceAccountName"])
      assert.equal(await wrong(path), "ForbiddenPath", path);
    for (const name of ["podTemplateSpec", "podSpec", "workerPodSpec", "templateSpec"])
      assert.equal(await wrong(`spec.${name}.nodeName`), "ForbiddenPath", name);
    assert.equal(await wrong('spec.podTemplateSpec.metadata.annotations["a"]'), undefined);
    assert.equal(await wrong("spec.podTemplate.spec.restartAt", "Time", { isPublished: false }), "ForbiddenPath");
    assert.equal(await wrong("spec.trigger", "ResourceVersion", { resource: DEPLOYMENTS }), "ForbiddenPath");
  });

  it("names no account and no image of pods, outside of pod specs too", async () => {
    for (const path of ["spec.serviceAccount", "spec.serviceAccountName", "spec.initImage"])
      assert.equal(await wrong(path), "ForbiddenPath", path);
    for (const path of [
      "spec.ServiceAccountName",
      "spec.account.serviceAccount.name",
      "spec.imageName",
      "spec.imageTag",
    ])
      assert.equal(await wrong(path), "ForbiddenPath", path);
    for (const path of ["spec.image.repository", "spec.image.tag", "spec.images.main"])
      assert.equal(await wrong(path), "ForbiddenPath", path);
    assert.equal(await wrong('spec.podAnnotations["image"]'), undefined);
    assert.equal(await wrong('spec.account.serviceAccount.annotations["a"]'), undefined);
  });

  it("is checked only if there is one", async () => {
    const schemas = { of: () => Promise.reject(new Error("it is asked")) };
    assert.equal(await wrongRestartField(schemas, [lookupOf()], rolloutSpecOf()), undefined);
  });
});
