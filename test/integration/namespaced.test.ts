/** Shows that a namespaced Inlay does all of its work with a Role, and does nothing outside of its namespace. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Access, may, untilMay } from "../controller/access.ts";
import type { AnyObject } from "../controller/api.ts";
import type { AuditedRequest } from "../controller/audit.ts";
import { eventually } from "../controller/eventually.ts";
import { Keyring } from "../controller/keyring.ts";
import { registerSecretBytes, secretText } from "../controller/leak-detector.ts";
import { folder, Installation, leads } from "../controller/one-namespace.ts";
import { commandsIn, paste } from "../controller/paste.ts";
import { describeRight, isAdmitted, isBy, rightsIn } from "../controller/rights.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";
import { accessKeySpec, createNamespace, harborTarget, type TestNamespace } from "../controller/test-namespace.ts";
import { KAFKA, Versioned, v1, v1beta2, v1modern } from "../controller/versioned.ts";
import { isRolling } from "../controller/workloads.ts";

const messageOf = (binding: AnyObject): string => binding.status.conditions[0].message;

describe("a namespaced Inlay", function () {
  this.timeout("2m");
  let one: Installation;
  let two: Installation;
  let mark: number;

  before(async () => {
    await stopSharedController();
    mark = await auditLog().mark();
    [one, two] = [await Installation.make(), await Installation.make()];
    for (const each of [one, two]) {
      const [pod] = await each.pods();
      await leads(await each.start("inlay-controller", "--pod-name", pod.metadata.name));
    }
  });
  after(() => Promise.all([one, two].map((each) => each?.stop())));

  it("runs as the namespace admits its Deployment, without a binding to a ClusterRole", async () => {
    const { namespace } = one.team;
    const path = `${one.team.path("apps/v1", "deployments")}/inlay-controller`;
    await eventually(async () => assert.ok(!isRolling(await one.team.api.get(path))), 50_000);
    const { items } = await one.team.api.get("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings");
    const subjects = items.flatMap((binding: AnyObject) => binding.subjects ?? []);
    assert.deepEqual(
      subjects.filter((subject: AnyObject) => subject.namespace === namespace),
      [],
    );
    const elsewhere = [
      { group: "inlay.dev", resource: "secretbindings" },
      { resource: "serviceaccounts", name: "inlay" },
      { resource: "namespaces", name: "default" },
    ];
    for (const what of elsewhere) {
      assert.equal(await may(one.user, { verb: "list", ...what }), false, what.resource);
    }
  });

  it("labels the pods of its replicas", async () => {
    for (const each of [one, two])
      await eventually(async () =>
        assert.deepEqual((await each.pods()).map(({ metadata }) => metadata.labels["inlay-active"]).sort(), [
          "false",
          "true",
        ]),
      );
  });

  it("writes, rotates, reverts drift and releases in its namespace, beside another Inlay in another namespace", async () => {
    for (const { team } of [one, two]) {
      assert.equal((await team.s3().catch(() => undefined))?.accesskey, undefined);
      const value = await team.boundHarbor({ onRelease: "Remove" });
      assert.equal((await team.s3()).accesskey, value);
      const rotated = secretText("rotated");
      await team.secret("bucket", { accessKeyID: rotated });
      await eventually(async () => assert.equal((await team.s3()).accesskey, rotated));
      await team.editS3({ accesskey: "drift" });
      await eventually(async () => assert.equal((await team.s3()).accesskey, rotated));
      await team.unbind("harbor-s3");
      assert.equal((await team.s3()).accesskey, undefined);
      await eventually(async () =>
        assert.ok((await team.events("harbor-s3")).some(({ reason }) => reason === "Written")),
      );
    }
  });

  it("reads a source with granted: true only with a SecretGrant in its namespace", async () => {
    for (const { team } of [one, two]) {
      const value = secretText("granted");
      await team.secret("granted", { accessKeyID: value });
      await team.harbor("granted");
      const accesskey = { from: { source: "granted", key: "accessKeyID" } };
      await team.bind("granted", {
        sources: [{ secret: { name: "granted", granted: true } }],
        targets: [harborTarget({ accesskey }, { name: "granted" })],
      });
      const refused = await team.until("granted", "NotGranted");
      assert.deepEqual(await paste(commandsIn(messageOf(refused))), []);
      await team.until("granted", "Synced");
      assert.equal((await team.s3("granted")).accesskey, value);
      await team.unbind("granted");
    }
  });

  it("ignores bindings of other namespaces", async () => {
    const outside = await createNamespace({ controller: false });
    await outside.secret("bucket", { accessKeyID: secretText("access") });
    await outside.harbor();
    await outside.bind("harbor-s3", accessKeySpec());
    // A later binding is finished, so the controller did not just lack the time for this one.
    for (const { team } of [one, two]) {
      await team.bind("later", accessKeySpec());
      await team.until("later", "Synced");
    }
    assert.equal((await outside.binding("harbor-s3")).status.conditions, undefined);
    assert.equal((await outside.s3()).accesskey, undefined);
    await outside.api.delete(outside.bindingPath("harbor-s3"));
  });

  it("is ready", () => eventually(async () => assert.equal(await one.readiness(), "ok\n")));

  it("waits for its account, and writes once it may impersonate it", async () => {
    const { team } = two;
    await team.bind("rotated", { ...accessKeySpec({ name: "other" }), serviceAccountName: "rotator" });
    await team.harbor("other");
    await team.until("rotated", "ImpersonationForbidden");
    await team.unbind("rotated");
    await team.api.delete(`${team.path("v1", "serviceaccounts")}/inlay`);
    await team.until("later", "ServiceAccountNotFound");
    await team.createAccount();
    await team.until("later", "Synced");
  });

  describe("refuses with OutOfScope, whatever its account may do there,", () => {
    let value: string;
    let other: TestNamespace;

    before(async () => {
      other = await createNamespace({ controller: false });
      await other.harbor();
      value = secretText("access");
      await one.team.secret("far", { accessKeyID: value });
      await one.team.harbor("far");
      await one.team.grantInCluster([
        { apiGroups: ["*"], resources: ["*"], verbs: ["get", "list", "watch", "patch", "create", "delete"] },
      ]);
      const account = `system:serviceaccount:${one.team.namespace}:inlay`;
      const { namespace } = other;
      await untilMay(account, { verb: "patch", group: "goharbor.io", resource: "harborclusters", namespace });
    });

    const accesskey = { accesskey: { from: { source: "far", key: "accessKeyID" } } };
    const to = (more: object) => ({ sources: [{ secret: { name: "far" } }], targets: [harborTarget(accesskey, more)] });
    const cases: Record<string, (other: string) => object> = {
      "a target in another namespace": (other) => to({ name: "harbor", namespace: other }),
      "targets in namespaces chosen by labels": () => to({ namespaceSelector: { matchLabels: { any: "thing" } } }),
      "targets in namespaces chosen by globs": () => to({ namespaceSelector: { names: ["team-*"] } }),
      "targets in another namespace that is listed": (other) => to({ namespaceSelector: { names: [other] } }),
      "a target of the cluster": () => ({
        sources: [{ secret: { name: "far" } }],
        targets: [
          {
            apiVersion: "scheduling.k8s.io/v1",
            kind: "PriorityClass",
            name: "system-node-critical",
            fields: [{ path: "description", from: { source: "far", key: "accessKeyID" } }],
          },
        ],
      }),
      "a source in another namespace": (other) => ({
        sources: [{ secret: { name: "far", namespace: other } }],
        targets: [harborTarget(accesskey, { name: "far" })],
      }),
      "a source of the cluster": () => ({
        sources: [
          {
            name: "class",
            object: {
              apiVersion: "scheduling.k8s.io/v1",
              resource: "priorityclasses",
              name: "system-node-critical",
              scope: "Cluster",
            },
          },
        ],
        targets: [
          harborTarget({ accesskey: { from: { source: "class", fieldPath: "description" } } }, { name: "far" }),
        ],
      }),
    };
    for (const [what, specFor] of Object.entries(cases)) {
      it(what, async () => {
        const name = what.replaceAll(" ", "-");
        await one.team.bind(name, specFor(other.namespace));
        const message = messageOf(await one.team.until(name, "OutOfScope"));
        assert.match(message, new RegExp(`\\b${one.team.namespace}\\b`));
        assert.equal((await other.s3()).accesskey, undefined);
        await one.team.unbind(name);
      });
    }

    it("and keeps the fields that a binding wrote before it was out of scope", async () => {
      await one.team.bind("moves", { ...to({ name: "far" }), defaults: { onRelease: "Remove" } });
      await one.team.until("moves", "Synced");
      await one.team.rebind("moves", to({ name: "far", namespaceSelector: { names: ["team-*"] } }));
      await one.team.until("moves", "OutOfScope");
      assert.equal((await one.team.s3("far")).accesskey, value);
      await one.team.rebind("moves", to({ name: "far" }));
      await one.team.until("moves", "Synced");
      await one.team.unbind("moves");
      assert.equal((await one.team.s3("far")).accesskey, undefined);
    });
  });

  it("prunes no field that one of several versions lacks, although it may not see how the kind converts", async () => {
    for (const [role, versions, reason] of [
      ["whole", [v1, v1beta2], "Synced"],
      ["none-whole", [v1modern, v1beta2], "VersionDropsFields"],
    ] as const) {
      const items = new Versioned(two.team);
      await items.install([...versions], role);
      await items.published();
      await items.make("main", { kafka: KAFKA });
      await items.bind(role, { name: "main" });
      const message = messageOf(await two.team.until(role, reason));
      await items.until("main", reason === "Synced" ? { token: items.value } : {});
      if (reason !== "Synced") assert.match(message, /get customresourcedefinitions\/items\.versioned-/);
      await two.team.unbind(role);
    }
  });

  it("writes objects of a kind that has lost a version, whose schema the API server still publishes", async () => {
    const items = new Versioned(two.team);
    await items.install([v1beta2, v1], "removed");
    await items.published();
    await items.make("shop", {}, "v1");
    await items.become([v1]);
    await items.bind("removed", { name: "shop" });
    await two.team.until("removed", "Synced");
    assert.equal((await two.team.api.get(items.path("v1", "shop"))).spec.token, items.value);
    await items.published();
    await two.team.unbind("removed");
  });

  it("has one leader among its replicas, elected by a Lease of its namespace", async () => {
    const { team } = one;
    const lease = `${team.path("coordination.k8s.io/v1", "leases")}/inlay-controller`;
    const [first] = one.replicas;
    const second = await one.start();
    const { holderIdentity } = (await team.api.get(lease)).spec;
    assert.match(first?.output ?? "", new RegExp(`"identity":"${holderIdentity}"`));
    assert.doesNotMatch(second.output, /"msg":"leading"/);
    await first?.stop();
    await leads(second);
    assert.notEqual((await team.api.get(lease)).spec.holderIdentity, holderIdentity);
    const rotated = secretText("rotated");
    await team.secret("bucket", { accessKeyID: rotated });
    await eventually(async () => assert.equal((await team.s3()).accesskey, rotated));
  });

  it("has its own digest key, which no other installation reads", async () => {
    const made = [];
    for (const { team } of [one, two]) {
      const ring = await Keyring.open(team.namespace);
      try {
        const { id, bytes } = await ring.start().primary();
        registerSecretBytes(bytes.reveal());
        const { data } = await team.api.get(`${team.path("v1", "secrets")}/inlay-digest-key`);
        assert.equal(data[id], Buffer.from(bytes.reveal()).toString("base64"));
        made.push(data[id]);
      } finally {
        await ring.close();
      }
    }
    assert.notEqual(made[0], made[1]);
  });

  it("reports the state of a VaultConnection of its namespace", async () => {
    for (const { team } of [one, two]) {
      const path = team.path("inlay.dev/v1alpha1", "vaultconnections");
      await team.api.create(path, {
        apiVersion: "inlay.dev/v1alpha1",
        kind: "VaultConnection",
        metadata: { name: "vault" },
        spec: { address: "https://vault.not-listed.example.com:8200" },
      });
      await eventually(async () => {
        const [ready] = (await team.api.get(`${path}/vault`)).status?.conditions ?? [];
        assert.equal(ready?.reason, "ForbiddenAddress");
      });
    }
  });

  it("may review the tokens of scrapers once a cluster admin has run the command of its README", async () => {
    const { namespace, api } = one.team;
    const reviews: Access = { verb: "create", group: "authentication.k8s.io", resource: "tokenreviews" };
    assert.equal(await may(one.user, reviews), false);
    const readme = await readFile(join(folder, "README.md"), "utf8");
    const command = /^sed .* deploy\/namespaced\/optional\/metrics\.yaml .*$/m.exec(readme)?.[0] ?? assert.fail();
    try {
      await paste(`cd ${join(folder, "..", "..")} && ${command.replaceAll("team-a", namespace)}`);
      await untilMay(one.user, reviews);
      await untilMay(one.user, { ...reviews, group: "authorization.k8s.io", resource: "subjectaccessreviews" });
    } finally {
      await api.remove(`/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/inlay-metrics-${namespace}`);
    }
  });

  it("requests nothing outside of its namespace, is denied nothing inside of it, and uses every permission", async () => {
    const rights = rightsIn(await readFile(join(folder, "10-controller-role.yaml"), "utf8"));
    for (const each of [one, two]) {
      const requests = await each.requests(mark);
      // API discovery and reviews of its own permissions have no namespace, and every authenticated user may request them.
      const elsewhere = requests.filter(
        ({ resource, namespace }) =>
          !/^(authorization\.k8s\.io\/selfsubject\w+reviews)?$/.test(resource) && namespace !== each.team.namespace,
      );
      const crds = "apiextensions.k8s.io/customresourcedefinitions";
      const isAboutVersions = ({ verb, resource }: AuditedRequest) => verb === "get" && resource === crds;
      assert.deepEqual(
        elsewhere.filter((request) => !isAboutVersions(request)),
        [],
      );
      const refused = requests.filter(
        (request) => request.lacks === "a right" && request.name !== "rotator" && !isAboutVersions(request),
      );
      assert.deepEqual(refused, []);
      const admitted = requests.filter(isAdmitted);
      const unused = rights.filter((right) => !admitted.some((request) => isBy(right, request)));
      assert.deepEqual(unused.map(describeRight), [], each.user);
    }
  });
});
