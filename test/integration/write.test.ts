/** Shows that values of sources arrive unchanged in fields of targets. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { auditLog } from "../controller/shared.ts";
import {
  accessKeySpec,
  createNamespace,
  fieldsOf,
  harborTarget,
  s3Fields,
  type TestNamespace,
  usualRules,
} from "../controller/test-namespace.ts";

const accessKeyFrom = { from: { source: "bucket", key: "accessKeyID" } };
const clusterWidget: Kind = {
  group: "write.example.com",
  kind: "ClusterWidget",
  plural: "clusterwidgets",
  scope: "Cluster",
  spec: { type: "object", properties: { token: { type: "string" } } },
};

/** Creates the Deployment `web`, and an account that may write Deployments. */
async function createNamespaceWithDeployment(): Promise<{ team: TestNamespace; path: string }> {
  const deployments = { apiGroups: ["apps"], resources: ["deployments"], verbs: ["get", "list", "watch", "patch"] };
  const team = await createNamespace({ rules: [...usualRules, deployments] });
  const labels = { app: "web" };
  await team.api.create(team.path("apps/v1", "deployments"), {
    metadata: { name: "web", annotations: { kept: "yes" } },
    spec: {
      replicas: 0,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "web", image: "web:1" }] } },
    },
  });
  return { team, path: `${team.path("apps/v1", "deployments")}/web` };
}

describe("a SecretBinding writes", () => {
  it("a key of a Secret and a template into a HarborCluster", async () => {
    const team = await createNamespace();
    const accessKey = secretText("access");
    await team.secret("bucket", { accessKeyID: accessKey, host: "s3.example.com", port: "9000" });
    await team.harbor();
    await team.bind("harbor-s3", {
      sources: [{ secret: { name: "bucket" } }],
      targets: [
        harborTarget({
          accesskey: accessKeyFrom,
          regionendpoint: { template: "https://{{bucket.host}}:{{bucket.port}}" },
        }),
      ],
    });
    await team.until("harbor-s3", "Synced");
    const s3 = await team.s3();
    assert.equal(s3.accesskey, accessKey);
    assert.equal(s3.regionendpoint, "https://s3.example.com:9000");
    assert.equal(s3.bucket, "harbor");
  });

  it("a rotated value at once", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    const rotated = secretText("after");
    await team.secret("bucket", { accessKeyID: rotated });
    await eventually(async () => assert.equal((await team.s3()).accesskey, rotated));
  });

  it("all fields of a target in one request, from any sources", async () => {
    const team = await createNamespace();
    const [accessKey, host] = [secretText("access"), secretText("host")];
    await team.secret("bucket", { accessKeyID: accessKey });
    await team.secret("place", { host });
    await team.harbor();
    const mark = await auditLog().mark();
    await team.bind("harbor-s3", {
      sources: [{ secret: { name: "bucket" } }, { secret: { name: "place" }, name: "where" }],
      targets: [harborTarget({ accesskey: accessKeyFrom, regionendpoint: { template: "https://{{where.host}}" } })],
    });
    await team.until("harbor-s3", "Synced");
    const { accesskey, regionendpoint } = await team.s3();
    assert.deepEqual({ accesskey, regionendpoint }, { accesskey: accessKey, regionendpoint: `https://${host}` });
    const requests = (await auditLog().since(mark)).filter(({ namespace }) => namespace === team.namespace);
    const writes = requests.filter(({ verb, resource }) => verb !== "get" && resource.endsWith("harborclusters"));
    const patches = writes.filter(({ verb }) => verb === "patch");
    assert.equal(patches.length, 1, JSON.stringify(writes));
    assert.equal(patches[0]?.as, `system:serviceaccount:${team.namespace}:inlay`);
  });

  it("several targets by name", async () => {
    const team = await createNamespace();
    const accessKey = secretText("access");
    await team.secret("bucket", { accessKeyID: accessKey });
    await team.harbor("one");
    await team.harbor("two");
    const fields = { accesskey: accessKeyFrom };
    await team.bind("harbor-s3", {
      sources: [{ secret: { name: "bucket" } }],
      targets: [harborTarget(fields, { name: "one" }), harborTarget(fields, { name: "two" })],
    });
    const { status } = await team.until("harbor-s3", "Synced");
    assert.equal(status.synced, "2/2");
    assert.equal((await team.s3("one")).accesskey, accessKey);
    assert.equal((await team.s3("two")).accesskey, accessKey);
  });

  it("a target in another namespace, if its account has the permission", async () => {
    const [team, other] = [await createNamespace(), await createNamespace({ account: false })];
    await team.grant(usualRules, { namespace: other.namespace, role: "guest" });
    const accessKey = secretText("access");
    await team.secret("bucket", { accessKeyID: accessKey });
    await other.harbor();
    await team.bind("harbor-s3", accessKeySpec({ namespace: other.namespace }));
    await team.until("harbor-s3", "Synced");
    assert.equal((await other.s3()).accesskey, accessKey);
  });

  it("a cluster-scoped target with an empty spec", async () => {
    const team = await createNamespace();
    await installKind(team.api, clusterWidget);
    await team.grantInCluster([mayWrite(clusterWidget)]);
    await createObject(team.api, clusterWidget, team.namespace, {});
    const accessKey = secretText("access");
    await team.secret("bucket", { accessKeyID: accessKey });
    const fields = [{ path: "spec.token", ...accessKeyFrom }];
    await team.bind("widget", {
      sources: [{ secret: { name: "bucket" } }],
      targets: [{ apiVersion: apiVersionOf(clusterWidget), kind: "ClusterWidget", name: team.namespace, fields }],
    });
    await team.until("widget", "Synced");
    const widget = await team.api.get(objectPath(clusterWidget, undefined, team.namespace));
    assert.equal(widget.spec.token, accessKey);
  });

  it("an annotation whose key has dots and slashes", async () => {
    const { team, path } = await createNamespaceWithDeployment();
    const value = secretText("annotation");
    await team.secret("bucket", { accessKeyID: value });
    const fields = [{ path: 'metadata.annotations["example.com/key"]', ...accessKeyFrom }];
    await team.bind("web", {
      sources: [{ secret: { name: "bucket" } }],
      targets: [{ apiVersion: "apps/v1", kind: "Deployment", name: "web", fields }],
    });
    await team.until("web", "Synced");
    const { annotations } = (await team.api.get(path)).metadata;
    assert.equal(annotations["example.com/key"], value);
    assert.equal(annotations.kept, "yes");
  });

  it("an annotation of a pod template", async () => {
    const { team, path } = await createNamespaceWithDeployment();
    const value = secretText("annotation");
    await team.secret("bucket", { accessKeyID: value });
    const fields = [{ path: 'spec.template.metadata.annotations["example.com/key"]', ...accessKeyFrom }];
    await team.bind("web", {
      sources: [{ secret: { name: "bucket" } }],
      targets: [{ apiVersion: "apps/v1", kind: "Deployment", name: "web", fields }],
    });
    await team.until("web", "Synced");
    assert.equal((await team.api.get(path)).spec.template.metadata.annotations["example.com/key"], value);
  });

  it("a key of a ConfigMap", async () => {
    const team = await createNamespace();
    await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "place" }, data: { host: "s3.test" } });
    await team.harbor();
    await team.bind("harbor-s3", {
      sources: [{ configMap: { name: "place" } }],
      targets: [harborTarget({ regionendpoint: { from: { source: "place", key: "host" } } })],
    });
    await team.until("harbor-s3", "Synced");
    assert.equal((await team.s3()).regionendpoint, "s3.test");
  });

  it("a field of another object, by its path and in a template", async () => {
    const team = await createNamespace();
    const service = await team.api.create(team.path("v1", "services"), {
      metadata: { name: "minio" },
      spec: { ports: [{ port: 9000 }] },
    });
    await team.harbor();
    await team.bind("harbor-s3", {
      sources: [{ object: { apiVersion: "v1", resource: "services", name: "minio" } }],
      targets: [
        harborTarget({
          accesskey: { from: { source: "minio", fieldPath: "spec.clusterIP" } },
          regionendpoint: { template: "http://{{minio.spec.clusterIP}}" },
        }),
      ],
    });
    await team.until("harbor-s3", "Synced");
    const { accesskey, regionendpoint } = await team.s3();
    const { clusterIP } = service.spec;
    assert.deepEqual({ accesskey, regionendpoint }, { accesskey: clusterIP, regionendpoint: `http://${clusterIP}` });
  });

  it("a field of a cluster-scoped object", async () => {
    const team = await createNamespace();
    await installKind(team.api, clusterWidget);
    await team.grantInCluster([mayWrite(clusterWidget)]);
    const token = secretText("token");
    await createObject(team.api, clusterWidget, team.namespace, { token });
    await team.harbor();
    const object = {
      apiVersion: apiVersionOf(clusterWidget),
      resource: "clusterwidgets",
      name: team.namespace,
      scope: "Cluster",
    };
    await team.bind("harbor-s3", {
      sources: [{ name: "widget", object }],
      targets: [harborTarget({ accesskey: { from: { source: "widget", fieldPath: "spec.token" } } })],
    });
    await team.until("harbor-s3", "Synced");
    assert.equal((await team.s3()).accesskey, token);
  });

  const pem = `-----BEGIN PRIVATE KEY-----\n${secretText("pem")}\n-----END PRIVATE KEY-----\n`;
  for (const [what, value] of Object.entries({
    "characters that mean something to HTML and JSON": `a&b"c<d>'\\${secretText("markup")}`,
    "text that looks like a template": `{{x}}${secretText("braces")}{{{y}}}`,
    "text that looks like a number": "12345",
    "text that looks like a boolean": "true",
    "several lines with one at the end": pem,
    "characters beyond the basic plane": `😀 ü ${secretText("emoji")} 密`,
  })) {
    it(`${what} unchanged, by key and by template`, async () => {
      const team = await createNamespace();
      await team.secret("bucket", { accessKeyID: value });
      await team.harbor();
      await team.bind("harbor-s3", {
        sources: [{ secret: { name: "bucket" } }],
        targets: [harborTarget({ accesskey: accessKeyFrom, regionendpoint: { template: "{{bucket.accessKeyID}}" } })],
      });
      await team.until("harbor-s3", "Synced");
      const { accesskey, regionendpoint } = await team.s3();
      assert.deepEqual([accesskey, regionendpoint], [value, value]);
    });
  }

  it("nothing of a target with a missing value, and all of another target", async () => {
    const team = await createNamespace();
    const accessKey = secretText("access");
    await team.secret("bucket", { accessKeyID: accessKey });
    const before = await team.harbor("half");
    await team.harbor("whole");
    await team.bind("harbor-s3", {
      sources: [{ secret: { name: "bucket" } }],
      targets: [
        harborTarget(
          { accesskey: accessKeyFrom, regionendpoint: { template: "{{bucket.endpoint}}" } },
          { name: "half" },
        ),
        harborTarget({ accesskey: accessKeyFrom }, { name: "whole" }),
      ],
    });
    const { status } = await team.until("harbor-s3", "KeyNotFound");
    assert.equal(status.synced, "1/2");
    assert.equal((await team.s3("whole")).accesskey, accessKey);
    assert.equal(
      (await team.api.get(team.harborPath("half"))).metadata.resourceVersion,
      before.metadata.resourceVersion,
    );
    await team.secret("bucket", { endpoint: "s3.test" });
    await team.until("harbor-s3", "Synced");
    assert.equal((await team.s3("half")).regionendpoint, "s3.test");
  });

  it("a single field of an object that the API server treats as one value, and the other fields stay", async () => {
    const services = { apiGroups: [""], resources: ["secrets", "services"], verbs: ["get", "list", "watch", "patch"] };
    const team = await createNamespace({ rules: [services] });
    const selector = { app: "web", tier: "front" };
    const ports = [{ port: 80 }];
    await team.api.create(team.path("v1", "services"), { metadata: { name: "web" }, spec: { ports, selector } });
    const accessKeyID = secretText("access");
    await team.secret("bucket", { accessKeyID });
    const fields = [{ path: "spec.selector.app", ...accessKeyFrom }];
    await team.bind("web", {
      sources: [{ secret: { name: "bucket" } }],
      targets: [{ apiVersion: "v1", kind: "Service", name: "web", fields }],
    });
    await team.until("web", "Synced");
    const written = { ...selector, app: accessKeyID };
    assert.deepEqual((await team.api.get(`${team.path("v1", "services")}/web`)).spec.selector, written);
  });

  it("as its own field manager, which owns only the fields that the binding names", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    const harbor = await team.api.get(team.harborPath());
    assert.deepEqual(fieldsOf(harbor, team.manager("harbor-s3")), s3Fields("accesskey"));
  });

  it("its status, and leaves the field managers of the binding unchanged", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    const { metadata } = await team.api.get(team.bindingPath("harbor-s3"));
    const managers = metadata.managedFields.map(
      ({ manager, subresource = "" }: AnyObject) => `${manager} ${subresource}`,
    );
    // Writes to the status, and to the finalizer.
    assert.equal(managers.length, 3, managers.join());
    for (const own of ["inlay status", "inlay "]) assert.ok(managers.includes(own), managers.join());
  });

  it("a target that is created later, and never creates one", async () => {
    const team = await createNamespace();
    const accessKey = secretText("access");
    await team.secret("bucket", { accessKeyID: accessKey });
    await team.bind("harbor-s3", accessKeySpec());
    await team.until("harbor-s3", "TargetNotFound");
    const requests = await team.requestsDuring(() => team.secret("bucket", { accessKeyID: accessKey, more: "x" }));
    assert.deepEqual(
      requests.filter(({ verb }) => ["create", "patch", "update"].includes(verb)),
      [],
    );
    assert.equal(await team.api.find(team.harborPath()), undefined);
    await team.harbor();
    await team.until("harbor-s3", "Synced");
    assert.equal((await team.s3()).accesskey, accessKey);
  });

  it("a recreated target", async () => {
    const team = await createNamespace();
    const accessKey = await team.boundHarbor();
    await team.api.delete(team.harborPath());
    await team.until("harbor-s3", "TargetNotFound");
    const { metadata } = await team.harbor();
    const { status } = await team.until("harbor-s3", "Synced");
    assert.equal((await team.s3()).accesskey, accessKey);
    assert.equal(status.targets[0].uid, metadata.uid);
  });

  it("the columns that kubectl get shows", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    const { stdout } = await controlPlane().kubectl("get", "secretbindings", `--namespace=${team.namespace}`);
    const [head = "", row = ""] = stdout.split("\n");
    assert.deepEqual(head.trim().split(/\s+/), ["NAME", "READY", "SYNCED", "REASON", "ROLLOUT", "AGE"]);
    assert.deepEqual(row.trim().split(/\s+/).slice(0, 4), ["harbor-s3", "True", "1/1", "Synced"]);
  });

  it("conditions and events for kubectl describe, without a value", async () => {
    const team = await createNamespace();
    const accessKey = await team.boundHarbor();
    await eventually(async () => {
      const { stdout } = await controlPlane().kubectl(
        "describe",
        "secretbinding/harbor-s3",
        `--namespace=${team.namespace}`,
      );
      assert.match(stdout, /Reason: +Synced/);
      assert.match(stdout, /Normal +Written .* spec\.storage\.spec\.s3\.accesskey of HarborCluster/);
      assert.ok(!stdout.includes(accessKey));
    });
  });
});
