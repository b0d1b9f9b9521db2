/**
 * The limits that an installation sets for all bindings: closed namespaces, and what the configuration denies and allows.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { bucket, guard } from "../controller/guarded.ts";
import { apiVersionOf, createObject, installKind, type Kind, objectPath } from "../controller/kinds.ts";
import { foundIn, registerSecretBytes, secretText } from "../controller/leak-detector.ts";
import { applyFile } from "../controller/manifests.ts";
import { commandsIn, paste } from "../controller/paste.ts";
import { CONTROLLER, requestsFor } from "../controller/requests.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";
import {
  createNamespace,
  harborTarget,
  RESTARTED_WITHIN_MS,
  type TestNamespace,
} from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const SYSTEM = ["kube-system", "inlay-system"];
const everything = [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }];
const sources = [{ secret: { name: "bucket" } }];
const secretPath = (namespace: string, name = "bucket") => `/api/v1/namespaces/${namespace}/secrets/${name}`;
const messageOf = ({ status }: AnyObject): string => status.conditions[0].message;
const notesOf = ({ status }: AnyObject): string => status.notes.join("\n");

/** A team whose account has all permissions, so that only Inlay limits it. */
async function newAlmighty(options: { controller?: boolean } = {}): Promise<{ team: TestNamespace; value: string }> {
  const team = await createNamespace(options);
  await team.grantInCluster(everything);
  const value = secretText("access");
  await team.secret("bucket", { accessKeyID: value });
  return { team, value };
}

/** A copy of the Secret, with a name that only this team uses. */
const copyOf = (team: TestNamespace, where: object, more: object = {}) => ({
  sources,
  targets: [
    {
      apiVersion: "v1",
      kind: "Secret",
      name: `copy-${team.namespace}`,
      ...where,
      create: { manifest: {} },
      fields: [{ path: "data", from: { source: "bucket" } }],
      ...more,
    },
  ],
});
const findCopy = (team: TestNamespace, namespace: string) =>
  team.api.find(secretPath(namespace, `copy-${team.namespace}`));

/** A field of one HarborCluster, and an access key for another. */
const withField = (path: string, template: string, [one, other] = ["harbor", "other"]) => ({
  sources,
  targets: [
    harborTarget({}, { name: one, fields: [{ path, template }] }),
    harborTarget({ accesskey: { from: { source: "bucket", key: "accessKeyID" } } }, { name: other }),
  ],
});

let places = 0;
/** Creates a namespace of a test's own. */
async function newPlace(team: TestNamespace, prefix: string, labels: object = {}): Promise<string> {
  const name = `${prefix}-${++places}-${team.namespace}`;
  await team.api.create("/api/v1/namespaces", { metadata: { name, labels } });
  return name;
}

async function inStep(team: TestNamespace, namespace: string): Promise<void> {
  await eventually(async () => {
    const source = await team.api.get(secretPath(team.namespace));
    assert.deepEqual((await findCopy(team, namespace))?.data, source.data);
  });
}

describe("kube-system and Inlay's own namespace", () => {
  for (const namespace of SYSTEM) {
    it(`refuse targets: ${namespace} is neither written nor read`, async () => {
      const { team } = await newAlmighty();
      const mark = await auditLog().mark();
      const configMap = { apiVersion: "v1", kind: "ConfigMap", name: "inlay-controller", namespace };
      const fields = [{ path: 'data["config.yaml"]', from: { source: "bucket", key: "accessKeyID" } }];
      await team.bind("into", { sources, targets: [{ ...configMap, fields }] });
      await team.bind("copy", copyOf(team, { namespace }));
      await team.bind("all", {
        sources,
        targets: [{ ...configMap, name: undefined, selector: { names: ["*"] }, fields }],
      });
      for (const name of ["into", "copy", "all"]) {
        const message = messageOf(await team.until(name, "ForbiddenNamespace"));
        assert.match(message, new RegExp(`the namespace ${namespace}\\b.*allowSystemNamespaces`));
      }
      const asked = (await requestsFor(team, mark)).filter(({ as, uri }) => as && uri.includes(`/${namespace}/`));
      assert.deepEqual(asked, []);
      assert.equal(await findCopy(team, namespace), undefined);
    });

    it(`refuse bindings: a binding in ${namespace} does nothing, and its account is not impersonated`, async () => {
      const { team } = await newAlmighty();
      await team.harbor();
      const name = `own-${team.namespace}`;
      const account = `system:serviceaccount:${namespace}:inlay`;
      const at = (plural: string) => `/api/v1/namespaces/${namespace}/${plural}`;
      if (!(await team.api.find(`${at("serviceaccounts")}/inlay`))) {
        await team.api.create(at("serviceaccounts"), { metadata: { name: "inlay" } });
      }
      await team.api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        metadata: { name },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
        subjects: [{ kind: "ServiceAccount", name: "inlay", namespace }],
      });
      await team.api.create(at("secrets"), { metadata: { name }, stringData: { accessKeyID: secretText("system") } });
      const mark = await auditLog().mark();
      const bindings = `/apis/inlay.dev/v1alpha1/namespaces/${namespace}/secretbindings`;
      await team.api.create(bindings, {
        apiVersion: "inlay.dev/v1alpha1",
        kind: "SecretBinding",
        metadata: { name },
        spec: {
          sources: [{ secret: { name } }],
          targets: [
            harborTarget({ accesskey: { from: { source: name, key: "accessKeyID" } } }, { namespace: team.namespace }),
          ],
        },
      });
      await eventually(async () => {
        const { status } = await team.api.get(`${bindings}/${name}`);
        assert.equal(status?.conditions[0].reason, "ForbiddenNamespace");
      });
      // That binding does not block a younger one with the same target.
      await team.bind("mine", {
        sources,
        targets: [harborTarget({ accesskey: { from: { source: "bucket", key: "accessKeyID" } } })],
      });
      await team.until("mine", "Synced");
      await requestsFor(team, mark);
      const asked = (await auditLog().since(mark)).filter(({ user, as }) => user === CONTROLLER && as === account);
      assert.deepEqual(asked, []);
      await team.api.delete(`${bindings}/${name}`);
      await team.untilGone(`${bindings}/${name}`);
    });
  }

  it("are omitted when a selector matches them, which is reported, and the other namespaces are written", async () => {
    const { team } = await newAlmighty();
    const key = "kubernetes.io/metadata.name";
    const values = [...SYSTEM, team.namespace];
    await team.bind(
      "labels",
      copyOf(team, { namespaceSelector: { matchExpressions: [{ key, operator: "In", values }] } }),
    );
    const binding = await team.until("labels", "Synced");
    assert.equal(binding.status.synced, "1/1");
    assert.match(notesOf(binding), /spec\.targets\[0\] .*inlay-system, kube-system/);
    await inStep(team, team.namespace);
    await team.bind("names", copyOf(team, { name: `other-${team.namespace}`, namespaceSelector: { names: SYSTEM } }));
    assert.match(messageOf(await team.until("names", "Synced")), /spec\.targets\[0\] .*kube-system, inlay-system/);
    for (const namespace of SYSTEM) assert.equal(await findCopy(team, namespace), undefined);
  });

  it("keep their labels: the Namespace objects are omitted too", async () => {
    const { team, value } = await newAlmighty();
    const own = await newPlace(team, "labelled", { own: team.namespace });
    const fields = [
      { path: 'metadata.annotations["example.com/key"]', from: { source: "bucket", key: "accessKeyID" } },
    ];
    const target = { apiVersion: "v1", kind: "Namespace", fields };
    await team.bind("named", { sources, targets: [{ ...target, name: "kube-system" }] });
    await team.until("named", "ForbiddenNamespace");
    await team.bind("selected", { sources, targets: [{ ...target, selector: { names: [own, "kube-s*"] } }] });
    assert.match(notesOf(await team.until("selected", "Synced")), /spec\.targets\[0\] .*kube-system/);
    const annotation = async (name: string) =>
      (await team.api.get(`/api/v1/namespaces/${name}`)).metadata.annotations?.["example.com/key"];
    assert.deepEqual([await annotation(own), await annotation("kube-system")], [value, undefined]);
  });
});

describe("a forged status", () => {
  it("makes no release of objects that no binding may write", async () => {
    const { team } = await newAlmighty();
    await team.boundHarbor({ onRelease: "Remove" });
    const name = `forged-${team.namespace}`;
    const clusterRoles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    const role = await team.api.create(clusterRoles, {
      metadata: { name, labels: { "inlay.dev/created-by": (await team.binding("harbor-s3")).metadata.uid } },
      rules: [],
    });
    const harbor = await team.api.merge(team.harborPath(), { metadata: { finalizers: ["example.com/mine"] } });
    await team.controller.stop();
    const { status } = await team.binding("harbor-s3");
    const forged = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", name, uid: role.metadata.uid };
    const targets = [
      { ...status.targets[0], paths: [...status.targets[0].paths, "metadata.finalizers"] },
      { ...forged, reason: "Synced", created: true, onRelease: "Remove" },
      { ...forged, reason: "Synced", paths: ["rules"], onRelease: "Remove" },
    ];
    await team.api.merge(`${team.bindingPath("harbor-s3")}/status`, { status: { ...status, targets } });
    await team.controller.start();
    await team.unbind("harbor-s3", RESTARTED_WITHIN_MS);
    assert.deepEqual(await team.api.get(`${clusterRoles}/${name}`), role);
    assert.equal((await team.s3()).accesskey, undefined);
    assert.deepEqual((await team.api.get(team.harborPath())).metadata.finalizers, harbor.metadata.finalizers);
  });
});

const configurationText = (text: string) =>
  `apiVersion: config.inlay.dev/v1alpha1\nkind: ControllerConfiguration\n${text}\n`;

/** Writes a configuration file for one test. */
async function configuration(text: string): Promise<string> {
  const file = join(await mkdtemp(join(controlPlane().folder, "config-")), "config.yaml");
  await writeFile(file, configurationText(text));
  return file;
}

/** The configuration without its rollouts. */
const configurationOf = (denied: TestNamespace) => `
allowSystemNamespaces: [kube-system]
targets:
  deny:
    - { namespaces: ['audit-*'], message: those are the auditors' }
    - { apiGroups: [goharbor.io], kinds: ["Harbor*"], namespaces: ['${denied.namespace}'], paths: [spec.externalURL] }
    - { apiGroups: [""], kinds: [ConfigMap], namespaces: ['${denied.namespace}'] }
    - { namespaces: ['${denied.namespace}'], paths: [metadata.annotations] }
`;

describe("the configuration of an installation", function () {
  this.timeout("2m");
  let controller: ControllerProcess;
  let file: string;
  /** A team whose bindings were older than it, with copies in a namespace that it denies, and in another. */
  let audited: { team: TestNamespace; value: string; closed: string; open: string };
  /** A team that may write neither some fields nor ConfigMaps, and wrote such a field before. */
  let denied: { team: TestNamespace; value: string };
  const annotation = 'metadata.annotations["example.com/key"]';

  before(async () => {
    const { team, value } = await newAlmighty();
    const labels = { audited: team.namespace };
    audited = {
      team,
      value,
      closed: await newPlace(team, "audit", labels),
      open: await newPlace(team, "open", labels),
    };
    await team.bind("named", copyOf(team, { namespace: audited.closed, name: "named" }));
    await team.bind("selected", copyOf(team, { namespaceSelector: { matchLabels: labels } }));
    denied = await newAlmighty();
    for (const name of ["harbor", "other", "released", "kept"]) await denied.team.harbor(name);
    const released = withField(annotation, "{{bucket.accessKeyID}}", ["released", "kept"]);
    await denied.team.bind("released", { ...released, defaults: { onRelease: "Remove" } });
    for (const name of ["named", "selected"]) await team.until(name, "Synced");
    await denied.team.until("released", "Synced");
    await stopSharedController();
    file = await configuration(configurationOf(denied.team));
    controller = new ControllerProcess(controlPlane(), "--config", file);
    await controller.start();
  });
  after(async () => {
    await controller?.stop();
    assert.deepEqual(foundIn(controller?.output ?? ""), []);
  });

  it("denies namespaces; older objects there stay, and are deleted with their binding", async () => {
    const { team, value, closed, open } = audited;
    await team.secret("bucket", { accessKeyID: secretText("rotated") });
    assert.match(
      messageOf(await team.until("named", "ForbiddenNamespace", RESTARTED_WITHIN_MS)),
      /targets\.deny\[0\].*those are the aud/,
    );
    const { status } = await team.until("selected", "ForbiddenNamespace", RESTARTED_WITHIN_MS);
    assert.equal(status.synced, "1/2");
    await inStep(team, open);
    const copied = async (name: string) => (await team.api.find(secretPath(closed, name)))?.data.accessKeyID;
    const before = Buffer.from(value).toString("base64");
    for (const name of ["named", `copy-${team.namespace}`]) assert.equal(await copied(name), before);
    const labels = { audited: team.namespace };
    await team.bind("late", copyOf(team, { name: "late", namespaceSelector: { matchLabels: labels } }));
    assert.match(notesOf(await team.until("late", "Synced")), new RegExp(`spec\\.targets\\[0\\] .*${closed}`));
    assert.equal(await copied("late"), undefined);
    for (const name of ["named", "selected"]) await team.unbind(name);
    for (const name of ["named", `copy-${team.namespace}`]) assert.equal(await copied(name), undefined);
  });

  it("denies kinds and paths, in manifests too, and the other targets are written", async () => {
    const { team, value } = denied;
    const rotate = "https://{{bucket.accessKeyID}}.example.com";
    await team.bind("path", withField("spec.externalURL", rotate));
    assert.match(messageOf(await team.until("path", "ForbiddenPath")), /spec\.externalURL of HarborCluster/);
    assert.equal((await team.s3("other")).accesskey, value);
    await team.bind("around", withField("spec", "{}"));
    await team.until("around", "ForbiddenPath");
    const manifest = { spec: { externalURL: "https://x" } };
    await team.bind("made", {
      sources,
      targets: [harborTarget({}, { name: "made", fields: [], create: { manifest } })],
    });
    await team.until("made", "ForbiddenPath");
    assert.equal(await team.api.find(team.harborPath("made")), undefined);
    const configMap = { apiVersion: "v1", kind: "ConfigMap", name: "x", create: { manifest: {} }, fields: [] };
    await team.bind("kind", { sources, targets: [configMap] });
    await team.until("kind", "ForbiddenNamespace");
    assert.equal((await team.api.get(team.harborPath())).spec.externalURL, "https://harbor.example.com");
  });

  it("permits the release of a denied field, when it is removed from the binding", async () => {
    const { team, value } = denied;
    await team.until("released", "ForbiddenPath", RESTARTED_WITHIN_MS);
    const written = async () =>
      (await team.api.get(team.harborPath("released"))).metadata.annotations?.["example.com/key"];
    assert.equal(await written(), value);
    const { targets } = withField(annotation, "{{bucket.accessKeyID}}", ["released", "kept"]);
    await team.rebind("released", { targets: targets.slice(1) });
    await team.until("released", "Synced");
    assert.equal(await written(), undefined);
  });

  it("opens kube-system to accounts with permissions there", async () => {
    const { team } = audited;
    await team.bind("copy", copyOf(team, { namespace: "kube-system" }));
    await team.until("copy", "Synced");
    await inStep(team, "kube-system");
    await team.bind("own", copyOf(team, { namespace: "inlay-system" }));
    await team.until("own", "ForbiddenNamespace");
    await team.unbind("copy");
    assert.equal(await findCopy(team, "kube-system"), undefined);
  });

  it("suspends rollouts without a restart, and an invalid change resumes none", async () => {
    const says = (text: string) =>
      eventually(() => assert.ok(controller.output.includes(text), `the log does not say ${text}`));
    await writeFile(file, configurationText("rollouts: { suspend: true }"));
    await says('"rollouts":{"suspend":true},"msg":"applied the changed section rollouts of the configuration"');
    await writeFile(file, configurationText("rollouts: { suspend: maybe }"));
    await says('"rollouts":{"suspend":true},"error":"rollouts.suspend: must be true or false"');
    assert.equal(await controller.stop(), 0);
  });

  it("allows nothing else if it has a list of what it allows", async () => {
    const kind: Kind = {
      group: "installation.example.com",
      kind: "Setting",
      plural: "settings",
      scope: "Cluster",
      spec: { type: "object", properties: { value: { type: "string" } } },
    };
    const { team, value } = await newAlmighty({ controller: false });
    await installKind(team.api, kind);
    await createObject(team.api, kind, "one", {});
    await controller.stop();
    // The targets are all in a namespace.
    const allowed = await configuration("targets: { allow: [{ namespaces: ['*'] }] }");
    controller = new ControllerProcess(controlPlane(), "--config", allowed);
    await controller.start();
    await team.harbor("other");
    const fields = [{ path: "spec.value", from: { source: "bucket", key: "accessKeyID" } }];
    const setting = { apiVersion: apiVersionOf(kind), kind: kind.kind, fields };
    const { targets } = withField("spec.version", "x");
    await team.bind("named", { sources, targets: [{ ...setting, name: "one" }, targets[1]] });
    const binding = await team.until("named", "ForbiddenNamespace");
    assert.match(messageOf(binding), /Setting of installation\.example\.com.*targets\.allow/);
    assert.equal((await team.s3("other")).accesskey, value);
    await team.bind("selected", { sources, targets: [{ ...setting, selector: { names: ["*"] } }] });
    await team.until("selected", "ForbiddenNamespace");
    assert.equal((await team.api.get(objectPath(kind, undefined, "one"))).spec.value, undefined);
  });

  it("with an error ends the controller at once, and names the error", async () => {
    const file = await configuration("targets: { deny: [{ kind: [Pod] }] }");
    const inlay = join(import.meta.dirname, "..", "..", "src", "main.ts");
    const args = [inlay, "controller", "--kubeconfig", controlPlane().kubeconfigFile, "--config", file];
    await assert.rejects(promisify(execFile)(process.execPath, args), {
      code: 1,
      stderr: /config\.yaml: targets\.deny\[0\]\.kind: .*kinds/,
    });
  });
});

describe("an installation with missing parts", function () {
  this.timeout("2m");
  const root = join(import.meta.dirname, "..", "..");
  const policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
  const role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/inlay-controller";
  const key = "/api/v1/namespaces/inlay-system/secrets/inlay-digest-key";
  let controller: ControllerProcess;
  let team: TestNamespace;
  let shop: Workloads;

  const says = (...lines: RegExp[]) =>
    eventually(async () => {
      const page = await controller.page("/readyz?verbose");
      for (const line of lines) assert.match(page, line);
      assert.match(page, /readyz check passed\n$/);
    });
  const incomplete = async (name: string, reason: string | undefined) =>
    eventually(async () => {
      const { conditions = [] } = (await team.binding(name)).status ?? {};
      const found = conditions.find(({ type }: AnyObject) => type === "InstallationComplete");
      assert.deepEqual(found && [found.status, found.reason], reason && ["False", reason]);
    });
  const logged = (text: string) => controller.output.split("\n").filter((line) => line.includes(text)).length;
  const apply = async () => {
    await applyFile(team.api, join(root, "deploy", "policies"));
    await applyFile(team.api, join(root, "deploy", "manifests", "10-controller-role.yaml"));
  };

  before(async () => {
    await stopSharedController();
    team = await createNamespace({ rules: rolloutRules, controller: false });
    shop = new Workloads(team);
    await team.secret("bucket", { token: secretText("token") });
    await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "target" } });
    await team.api.create(team.path("inlay.dev/v1alpha1", "secretbindings"), guard([bucket()]));
    await team.api.remove(`${policies}/inlay-protect`);
    await team.api.merge(`${policies}/inlay-replicas`, {
      metadata: { labels: { "app.kubernetes.io/version": "0.0.9" } },
    });
    const { rules } = await team.api.get(role);
    const fewer = rules.filter(({ resources }: AnyObject) => !resources.includes("bindingcompositions/status"));
    await team.api.merge(role, { rules: fewer });
    controller = new ControllerProcess(controlPlane());
    await controller.start();
  });
  after(async () => {
    await apply();
    await controller.stop();
    assert.deepEqual(foundIn(controller.output), []);
  });

  it("is ready, and says what is missing and what to do: in the log, in /readyz?verbose, in the metrics and on the bindings", async () => {
    await says(
      /^\[!\]policies degraded: .*\(missing: inlay-protect; of the older version 0\.0\.9: inlay-replicas\).*: kubectl apply -f deploy\/policies\/$/m,
      /^\[!\]permissions degraded: .*\(update bindingcompositions\.inlay\.dev\/status\).*: kubectl apply -f deploy\/manifests\/10-/m,
      /^\[\+\]second_controller ok$/m,
    );
    assert.equal(await controller.page("/readyz"), "ok\n");
    assert.equal(await controller.metric("inlay_installation_problems", 'check="policies"'), 2);
    assert.equal(await controller.metric("inlay_installation_problems", 'check="permissions"'), 1);
    assert.equal(logged("admission policies are not in force"), 1);
    await incomplete("guard", "PolicyMissing");
  });

  it("keeps the digest key when its Secret is deleted while it runs: no change is lost, and no workload restarts otherwise", async () => {
    await shop.deploy({ core: { env: { bucket: ["token"] } } });
    // A key that older digests may need, as after a rotation.
    await team.api.merge(key, { data: { "2026-01-01-00000000": randomBytes(32).toString("base64") } });
    await team.bind("rolls", { sources: [{ secret: { name: "bucket" } }], rollout: { consumersOf: ["bucket"] } });
    await shop.rolledOut("rolls", 0);
    await incomplete("rolls", undefined);
    const { data } = await team.api.get(key);
    for (const text of Object.values<string>(data)) registerSecretBytes(Buffer.from(text, "base64"));
    await team.api.delete(key);
    await says(/^\[!\]digest_key degraded: there is no Secret inlay-system\/inlay-digest-key.* in memory/m);
    await incomplete("rolls", "NoDigestKey");
    await team.secret("bucket", { token: secretText("token") });
    await shop.rolledOut("rolls", 1);
    const [, message = ""] = /^\[!\]digest_key degraded: (.*)$/m.exec(await controller.page("/readyz?verbose")) ?? [];
    await paste(commandsIn(message));
    await says(/^\[\+\]digest_key ok$/m);
    assert.deepEqual((await team.api.get(key)).data, data);
    await incomplete("rolls", undefined);
    await shop.rolledOut("rolls", 1);
  });

  it("says that it is complete again soon after an admin has repaired it", async () => {
    await apply();
    await says(/^\[\+\]policies ok$/m, /^\[\+\]permissions ok$/m, /^\[\+\]digest_key ok$/m);
    assert.equal(await controller.metric("inlay_installation_problems"), 0);
    assert.equal(logged("passes again"), 3);
    await incomplete("guard", undefined);
  });
});
