/** The record of a restart by Reloader's annotations. A second try writes the same record. */
import assert from "node:assert/strict";
import type { SecretBinding } from "../../../../src/api/binding.ts";
import { LAST_RELOADED_FROM } from "../../../../src/api/reloader.ts";
import { FieldPath } from "../../../../src/apimachinery/field-path.ts";
import type { JsonObject, KubeObject } from "../../../../src/apimachinery/objects.ts";
import { reloadRecord } from "../../../../src/rollout/restart/reload-record.ts";
import { stamp } from "../../../../src/rollout/restart/stamp.ts";
import { fakeClient } from "../../fakes.ts";
import { bindingOf, dependentOf, kubeObjectOf } from "../../objects.ts";

const STAMP = "1-3fa9c1-09ab34de12";
const KEY = "inlay.dev/rollout";
const TEMPLATE = "spec.template";
const stampAt = FieldPath.parse(`${TEMPLATE}.metadata.annotations["${KEY}"]`);
const dependent = dependentOf({ stampAt, version: { uid: "1", generation: 3, resourceVersion: "10" } });
const sources = [
  { name: "secret-login", secret: { name: "login" } },
  { name: "configmap-app", configMap: { name: "app" } },
] as SecretBinding["spec"]["sources"];
const binding = bindingOf({ metadata: { name: "reloader-deployment-core", namespace: "shop" }, spec: { sources } });
const CHANGED = "2026-11-21T10:00:00.750Z";

const containers = [
  { name: "proxy" },
  { name: "app", volumeMounts: [{ name: "config", mountPath: "/etc/app" }] },
  { name: "worker", envFrom: [{ secretRef: { name: "login" } }] },
];
const volumes = [{ name: "config", configMap: { name: "app" } }];

function workload(annotations: Record<string, string> = {}, more: object = {}): KubeObject {
  return kubeObjectOf({
    kind: "Deployment",
    metadata: { name: "core", uid: "1", generation: 3, resourceVersion: "12" },
    spec: { template: { metadata: { annotations }, spec: { containers, volumes, ...more } } },
  });
}

function recorded(causes: string[], now = workload()) {
  const planned = { dependent, causes };
  const pending = { firstChangeTime: CHANGED, lastChangeTime: CHANGED, reason: "", message: "" };
  return reloadRecord({ binding, planned, text: STAMP, pending }, now);
}

describe("the record of a restart by Reloader's annotations", () => {
  it("has what Reloader records, with the stamp in place of its hash", () => {
    assert.deepEqual(JSON.parse(recorded(["secret-login/*"]) ?? ""), {
      type: "SECRET",
      name: "login",
      namespace: "shop",
      hash: STAMP,
      containerRefs: ["worker"],
      observedAt: Date.parse("2026-11-21T10:00:00Z") / 1000,
    });
  });

  it("has the first source that changed, and the container that mounts it", () => {
    const { type, name, containerRefs } = JSON.parse(recorded(["configmap-app/*"]) ?? "");
    assert.deepEqual([type, name, containerRefs], ["CONFIGMAP", "app", ["app"]]);
    assert.equal(JSON.parse(recorded(["configmap-app/*", "secret-login/*"]) ?? "").name, "login");
  });

  it("names the first container if only an init container or none reads the source", () => {
    const initContainers = [{ name: "migrate", envFrom: [{ secretRef: { name: "login" } }] }];
    const only = workload({}, { containers: containers.slice(0, 2), initContainers });
    assert.deepEqual(JSON.parse(recorded(["secret-login/*"], only) ?? "").containerRefs, ["proxy"]);
  });

  it("is omitted for a source that the binding no longer has", () => {
    assert.equal(recorded(["secret-gone/*"]), undefined);
  });

  it("stays if the workload has that stamp already, with or without a record", () => {
    assert.equal(recorded(["secret-login/*"], workload({ [KEY]: STAMP, [LAST_RELOADED_FROM]: "{}" })), "{}");
    assert.equal(recorded(["secret-login/*"], workload({ [KEY]: STAMP })), undefined);
  });
});

describe("a restart with a record", () => {
  async function written(now: KubeObject | undefined) {
    const applied: JsonObject[] = [];
    const client = fakeClient({
      get: async () => now ?? assert.fail("nothing is there"),
      apply: async (_: unknown, __: unknown, ___: unknown, leaves: JsonObject) => {
        applied.push(leaves);
        return now as KubeObject;
      },
    });
    const answer = await stamp(
      client,
      "system:serviceaccount:inlay-system:inlay-reloader",
      dependent,
      STAMP,
      () => "{}",
    );
    return { applied, answer };
  }

  it("is one write of the template, for the version that was read", async () => {
    const { applied } = await written(workload());
    const annotations = { [LAST_RELOADED_FROM]: "{}", [KEY]: STAMP };
    assert.deepEqual(applied, [
      { spec: { template: { metadata: { annotations } } }, metadata: { resourceVersion: "12" } },
    ]);
  });

  it("is not written to another template than was decided on", async () => {
    const { metadata, ...rest } = workload();
    const { applied, answer } = await written({ ...rest, metadata: { ...metadata, generation: 4 } });
    assert.deepEqual([applied, answer], [[], "stale"]);
  });
});
