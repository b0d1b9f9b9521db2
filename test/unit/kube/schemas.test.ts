/** When schemas are fetched from the API server, and which changes listeners get. */
import assert from "node:assert/strict";
import type { Resource } from "../../../src/apimachinery/objects.ts";
import type { OpenApiSchema } from "../../../src/apimachinery/openapi.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { Schemas } from "../../../src/kube/schemas.ts";
import { fakeClock } from "../clock.ts";
import { fakeTransport } from "../fakes.ts";
import { CONFIGMAPS, HARBORS } from "../resources.ts";

const KINDS: Resource[] = [HARBORS, { ...HARBORS, kind: "Project", plural: "projects" }, CONFIGMAPS];
const KEY = "apis/goharbor.io/v1beta1";
const SHARED = "Shared";

describe("published schemas", () => {
  const clock = fakeClock();
  let documents: Record<string, Record<string, OpenApiSchema>>;
  let requests: string[];
  let isDown: boolean;
  let changes: string[];
  let schemas: Schemas;

  const schemaOf = ({ group, version, kind }: Resource, more: OpenApiSchema): OpenApiSchema => ({
    ...more,
    "x-kubernetes-group-version-kind": [{ group, version, kind }],
  });
  const urlOf = (key: string) => `/openapi/v3/${key}?hash=${JSON.stringify(documents[key])}`;

  beforeEach(async () => {
    const ofKind = (resource: Resource) => [resource.kind, schemaOf(resource, { type: "object" })] as const;
    const [harbor, project, configMap] = KINDS.map(ofKind);
    assert.ok(harbor && project && configMap);
    documents = {
      [KEY]: { ...Object.fromEntries([harbor, project]), [SHARED]: { type: "string" } },
      "api/v1": Object.fromEntries([configMap]),
    };
    [requests, changes, isDown] = [[], [], false];
    const request = async ({ path }: { path: string }): Promise<unknown> => {
      requests.push(path);
      if (isDown && path.includes("hash")) throw new ApiError(path, 503, "ServiceUnavailable");
      const key = Object.keys(documents).find((each) => path === urlOf(each));
      if (key !== undefined) return { components: { schemas: documents[key] } };
      return {
        paths: Object.fromEntries(Object.keys(documents).map((each) => [each, { serverRelativeURL: urlOf(each) }])),
      };
    };
    schemas = new Schemas(fakeTransport({ request }));
    schemas.onChange((apiVersion, isChanged) => {
      const kinds = KINDS.filter(({ kind }) => isChanged(kind)).map(({ kind }) => kind);
      changes.push(`${apiVersion}: ${kinds}`);
    });
    for (const each of KINDS) await schemas.of(each);
    requests = [];
  });

  const change = (name: string, schema: OpenApiSchema) => {
    documents = { ...documents, [KEY]: { ...documents[KEY], [name]: schema } };
  };
  it("are renewed after half a second, which shows each caller whether one has changed since it began", async () => {
    const { revision } = schemas;
    change(HARBORS.kind, changed);
    assert.deepEqual([await schemas.renew(revision), requests], [false, []]);
    await clock.pass(500);
    const renewed = await Promise.all([schemas.renew(revision), schemas.renew(revision)]);
    assert.deepEqual([...renewed, await schemas.renew(revision)], [true, true, true]);
    assert.deepEqual(await schemas.renew(schemas.revision), false);
    assert.deepEqual(changes, ["goharbor.io/v1beta1: HarborCluster"]);
  });

  const changed = schemaOf(HARBORS, { type: "object", required: ["spec"] });

  it("cost one request while none changes", async () => {
    await schemas.refresh();
    await schemas.refresh();
    assert.deepEqual([requests, changes], [["/openapi/v3", "/openapi/v3"], []]);
  });

  it("are fetched when they change, and listeners get the changed kinds", async () => {
    change("HarborCluster", changed);
    await schemas.refresh();
    assert.deepEqual([requests, changes], [["/openapi/v3", urlOf(KEY)], ["goharbor.io/v1beta1: HarborCluster"]]);
    assert.deepEqual((await schemas.of(HARBORS))?.root, changed);
  });

  it("change for all kinds of a group if a shared type changes, but not if a kind is added", async () => {
    change("ConfigMap", schemaOf({ ...HARBORS, kind: "ConfigMap" }, {}));
    await schemas.refresh();
    assert.deepEqual(changes.splice(0), ["goharbor.io/v1beta1: ConfigMap"]);
    change(SHARED, { type: "integer" });
    await schemas.refresh();
    assert.deepEqual(changes, ["goharbor.io/v1beta1: HarborCluster,Project,ConfigMap"]);
  });

  it("are reported too if a reconcile reads them first", async () => {
    change("HarborCluster", changed);
    await clock.pass(5_001);
    await schemas.of(HARBORS);
    await schemas.refresh();
    assert.deepEqual(changes, ["goharbor.io/v1beta1: HarborCluster"]);
  });

  it("stay known while they are not published, and change if others are published later", async () => {
    const { [KEY]: before = {}, ...rest } = documents;
    documents = rest;
    await schemas.refresh();
    assert.deepEqual((await schemas.of(HARBORS))?.root, before["HarborCluster"]);
    documents = { ...rest, [KEY]: before };
    await schemas.refresh();
    assert.deepEqual(changes, []);
    change("HarborCluster", changed);
    await schemas.refresh();
    assert.deepEqual(changes, ["goharbor.io/v1beta1: HarborCluster"]);
  });

  it("change when they are first published, some time after the kind is served", async () => {
    const late = { ...HARBORS, group: "late.example.com" };
    assert.equal(await schemas.of(late), undefined);
    documents = { ...documents, "apis/late.example.com/v1beta1": { Late: schemaOf(late, {}) } };
    await schemas.refresh();
    assert.deepEqual(changes, ["late.example.com/v1beta1: HarborCluster"]);
  });

  it("are compared with the last published ones after a failed request", async () => {
    change("HarborCluster", changed);
    isDown = true;
    for (const _ of [1, 2]) await assert.rejects(schemas.refresh(), { status: 503 });
    isDown = false;
    await schemas.refresh();
    assert.deepEqual(changes, ["goharbor.io/v1beta1: HarborCluster"]);
  });
});
