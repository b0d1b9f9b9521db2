/** The record of a restart by Reloader's annotations. A second try writes the same record. */
import assert from "node:assert/strict";
import type { SecretBinding } from "../../../../src/api/binding.ts";
import { GENERATED_FOR, LAST_RELOADED_FROM, RELOADER_ACCOUNT } from "../../../../src/api/reloader.ts";
import { FieldPath } from "../../../../src/apimachinery/field-path.ts";
import type { JsonObject, KubeObject } from "../../../../src/apimachinery/objects.ts";
import { reloadRecord, stamp } from "../../../../src/rollout/restart/restart.ts";
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
const binding = bindingOf({
  metadata: { name: "reloader-deployment-core", namespace: "shop", labels: { [GENERATED_FOR]: "reloader" } },
  spec: { sources, serviceAccountName: RELOADER_ACCOUNT },
});
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

function recorded(causes: string[], now = workload(), by = binding) {
  const planned = { dependent, causes };
  const pending = { firstChangeTime: CHANGED, lastChangeTime: CHANGED, reason: "", message: "" };
  return reloadRecord({ binding: by, planned, text: STAMP, pending }, now);
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

  it("is omitted for a source that the binding no longer has, and for a binding that no annotations generated", () => {
    assert.equal(recorded(["secret-gone/*"]), undefined);
    const own = bindingOf({ metadata: binding.metadata, spec: { sources } });
    assert.equal(recorded(["secret-login/*"], workload({ [LAST_RELOADED_FROM]: "{}" }), own), undefined);
  });

  it("stays if the workload has that stamp already, with or without a record", () => {
    assert.equal(recorded(["secret-login/*"], workload({ [KEY]: STAMP, [LAST_RELOADED_FROM]: "{}" })), "{}");
    assert.equal(recorded(["secret-login/*"], workload({ [KEY]: STAMP })), undefined);
  });
});

describe("a restart with a record", () => {
  async function restarted(now: KubeObject, record: string | undefined) {
    const written: JsonObject[] = [];
    const client = fakeClient({
      get: async () => now,
      mergeFields: async (_: unknown, __: unknown, patch: JsonObject) => {
        written.push(patch);
        return now;
      },
    });
    const identity = "system:serviceaccount:inlay-system:inlay-reloader";
    const answer = await stamp(client, identity, dependent, STAMP, () => record);
    return { written, answer };
  }

  it("is one write of the template, for the version that was read, which removes a former record", async () => {
    for (const record of ["{}", undefined]) {
      const { written } = await restarted(workload(), record);
      const annotations = { [LAST_RELOADED_FROM]: record ?? null, [KEY]: STAMP };
      assert.deepEqual(written, [
        { spec: { template: { metadata: { annotations } } }, metadata: { uid: "1", resourceVersion: "12" } },
      ]);
    }
  });

  it("is not written to another template than was decided on", async () => {
    const { metadata, ...rest } = workload();
    const { written, answer } = await restarted({ ...rest, metadata: { ...metadata, generation: 4 } }, "{}");
    assert.deepEqual([written, answer], [[], "stale"]);
  });
});
