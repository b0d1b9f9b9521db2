/**
 * Shows that a binding reports which field the rules of the cluster refuse, and which webhook fails, and writes once that is
 * fixed.
 */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { foundIn, secretText } from "../controller/leak-detector.ts";
import { createNamespace, harborTarget, usualRules } from "../controller/test-namespace.ts";
import { Versioned, v1 } from "../controller/versioned.ts";
import { deployment, rolloutRules } from "../controller/workloads.ts";

/** An address at which no server listens. */
const NOWHERE = "https://127.0.0.1:1/";
const S3 = "spec.storage.spec.s3";

describe("a binding with bad input", () => {
  it("whose value a policy refuses reports the field and the policy, whichever status code the policy returns", async () => {
    const team = await createNamespace();
    const value = secretText("access");
    await team.secret("bucket", { accessKeyID: value });
    await team.harbor("harbor");
    await team.harbor("other");
    const admission = "/apis/admissionregistration.k8s.io/v1";
    const name = `${team.namespace}-keys`;
    const path = "object.spec.storage.spec.s3.accesskey";
    await team.api.create(`${admission}/validatingadmissionpolicies`, {
      metadata: { name },
      spec: {
        matchConstraints: {
          resourceRules: [
            { apiGroups: ["goharbor.io"], apiVersions: ["*"], resources: ["harborclusters"], operations: ["UPDATE"] },
          ],
        },
        validations: [{ expression: `!has(${path})`, messageExpression: `'no ' + ${path}`, reason: "Forbidden" }],
      },
    });
    await team.api.create(`${admission}/validatingadmissionpolicybindings`, {
      metadata: { name },
      spec: {
        policyName: name,
        validationActions: ["Deny"],
        matchResources: { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": team.namespace } } },
      },
    });
    // A policy takes effect some time after it is created.
    await eventually(
      () => assert.rejects(team.editS3({ accesskey: "x" }, "kubectl-edit", "other"), { status: 403 }),
      30_000,
    );
    const fields = {
      accesskey: { from: { source: "bucket", key: "accessKeyID" } },
      regionendpoint: { template: "s3" },
    };
    await team.bind("harbor-s3", { sources: [{ secret: { name: "bucket" } }], targets: [harborTarget(fields)] });
    const { status } = await team.until("harbor-s3", "Rejected");
    const refused = `${S3}.accesskey is refused: ValidatingAdmissionPolicy ${name} with binding ${name} denied `;
    assert.ok(status.targets[0].message.startsWith(refused), status.targets[0].message);
    assert.match(status.targets[0].message, /\(403 Forbidden\); /);
    const text = JSON.stringify([status, await team.events("harbor-s3")]);
    assert.doesNotMatch(text, /kubectl create|denied request:|regionendpoint is/);
    assert.ok(!text.includes(value));
    await team.api.delete(`${admission}/validatingadmissionpolicybindings/${name}`);
    await eventually(() => team.editS3({ accesskey: "x" }, "kubectl-edit", "other"), 30_000);
    // Without a change it retries every half minute, which the tests of its reconciler show.
    const rotated = secretText("access");
    await team.secret("bucket", { accessKeyID: rotated });
    // On a slow machine, a retry may have written the former value before.
    await eventually(async () => assert.equal((await team.s3()).accesskey, rotated));
    await team.until("harbor-s3", "Synced");
  });

  it("that breaks a CEL rule over several fields reports the field whose dry run breaks it, or that all are needed", async () => {
    const gate: Kind = {
      group: "rejected.example.com",
      kind: "Gate",
      plural: "gates",
      spec: {
        type: "object",
        properties: Object.fromEntries(["a", "b", "c"].map((key) => [key, { type: "string", maxLength: 200 }])),
        "x-kubernetes-validations": [
          { rule: "!has(self.b) || self.b.startsWith('open')", message: "b begins with open" },
          { rule: "!has(self.a) || !has(self.c) || self.a == self.c" },
        ],
      },
    };
    const team = await createNamespace({ rules: [...usualRules, mayWrite(gate)] });
    await installKind(team.api, gate);
    await createObject(team.api, gate, "gate", {}, team.namespace);
    const [a, b, c] = ["a", "b", "c"].map((key) => secretText(key)) as [string, string, string];
    await team.secret("bucket", { a, b, c: a });
    const fields = ["a", "b", "c"].map((key) => ({ path: `spec.${key}`, from: { source: "bucket", key } }));
    const target = { apiVersion: apiVersionOf(gate), kind: gate.kind, name: "gate", fields };
    await team.bind("gate", { sources: [{ secret: { name: "bucket" } }], targets: [target] });
    const says = (text: string) =>
      eventually(async () => {
        const { status } = await team.until("gate", "Rejected");
        const { message } = status.targets[0];
        assert.ok(message.startsWith(text), message);
        assert.deepEqual(foundIn(JSON.stringify([status, await team.events("gate")])), []);
      });
    await says(
      'spec.b is refused, because spec breaks the rule "b begins with open": the API server refused to patch ',
    );
    await team.secret("bucket", { b: `open ${b}`, c });
    const rule = "spec breaks the CEL rule `!has(self.a) || !has(self.c) || self.a == self.c`";
    await says(`spec.a, spec.b, spec.c are accepted one by one, but not together; ${rule}: `);
    await team.secret("bucket", { c: a });
    await team.until("gate", "Synced");
    assert.deepEqual((await team.api.get(objectPath(gate, team.namespace, "gate"))).spec, { a, b: `open ${b}`, c: a });
  });

  it("that names a new element by a field which breaks a rule reports that field and rule, and no field that it writes", async () => {
    const text = { type: "string" };
    const tls = { type: "object", required: ["mode", "ca"], properties: { mode: text, ca: text } };
    const properties = { name: text, url: { ...text, pattern: "^https://" }, token: text, tls };
    const servers = { type: "array", items: { type: "object", required: ["name", "url", "tls"], properties } };
    const kind: Kind = {
      group: "elements.rejected.example.com",
      kind: "Client",
      plural: "clients",
      spec: { type: "object", properties: { servers } },
    };
    const team = await createNamespace({ rules: [...usualRules, mayWrite(kind)] });
    await installKind(team.api, kind);
    const one = { name: "one", url: "https://one", tls: { mode: "on", ca: "x" } };
    await createObject(team.api, kind, "main", { servers: [one] }, team.namespace);
    const values = { token: secretText("token"), mode: secretText("mode"), ca: secretText("ca") };
    await team.secret("bucket", values);
    const target = (url: string) => ({
      apiVersion: apiVersionOf(kind),
      kind: kind.kind,
      name: "main",
      fields: ["token", "tls.mode", "tls.ca"].map((field) => ({
        path: `spec.servers[name=two,url="${url}"].${field}`,
        from: { source: "bucket", key: field.split(".").at(-1) },
        onMissingElement: "Append",
      })),
    });
    await team.bind("main", { sources: [{ secret: { name: "bucket" } }], targets: [target("http://two")] });
    const { message } = (await team.until("main", "Rejected")).status.targets[0];
    assert.match(message, /^spec\.servers\[[^\]]*\]\.url must match the pattern \^https:\/\/: the API server refused /);
    await team.rebind("main", { targets: [target("https://two")] });
    await team.until("main", "Synced");
    const { token, ...both } = values;
    const { spec } = await team.api.get(objectPath(kind, team.namespace, "main"));
    assert.deepEqual(spec.servers, [one, { name: "two", url: "https://two", token, tls: both }]);
  });

  it("that another field or element excludes reports the path and the rule, and not just another field", async () => {
    const tagged: Kind = {
      group: "rejected.example.com",
      kind: "Tagged",
      plural: "taggeds",
      spec: {
        type: "object",
        properties: { tags: { type: "array", items: { type: "string" }, "x-kubernetes-list-type": "set" } },
      },
    };
    const team = await createNamespace({ rules: [...rolloutRules, mayWrite(tagged)] });
    await installKind(team.api, tagged);
    await createObject(team.api, tagged, "one", { tags: ["other", "more", "there"] }, team.namespace);
    const web: AnyObject = deployment("web", { replicas: 0 });
    const [container] = web.spec.template.spec.containers;
    container.env = [{ name: "B", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }];
    await team.api.create(team.path("apps/v1", "deployments"), web);
    await team.secret("bucket", { value: secretText("env") });
    // The API server copies elements of a set into managedFields, so none comes from a Secret.
    await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "tags" }, data: { value: "there" } });
    const env = `spec.template.spec.containers[name=${container.name}].env[name=B]`;
    const target = (apiVersion: string, kind: string, name: string, path: string, source: string) => ({
      ...{ apiVersion, kind, name, onConflict: "Force" },
      fields: [{ path, from: { source, key: "value" } }],
    });
    await team.bind("beside", {
      acknowledge: ["ReadableCopies"],
      sources: [{ secret: { name: "bucket" } }, { configMap: { name: "tags" } }],
      targets: [
        target(apiVersionOf(tagged), tagged.kind, "one", "spec.tags[0]", "tags"),
        target("apps/v1", "Deployment", "web", `${env}.value`, "bucket"),
      ],
    });
    const { status } = await team.until("beside", "Rejected");
    const messages = status.targets.map(({ message }: { message: string }) => message.split(": ")[0]);
    const not = ", and the binding does not write it";
    assert.deepEqual(messages, [
      "spec.tags[0] must be unique in its list",
      `${env}.valueFrom is not valid beside ${env}.value${not}`,
    ]);
    assert.deepEqual(foundIn(JSON.stringify([status, await team.events("beside")])), []);
  });
});

describe("a webhook that can't be called", () => {
  it("is reported as WebhookFailed with its name, while other bindings of the namespace are written", async () => {
    const team = await createNamespace();
    const [value, endpoint] = [secretText("access"), secretText("endpoint")];
    await team.secret("bucket", { accessKeyID: value });
    await team.secret("other", { endpoint });
    for (const name of ["harbor", "other"]) await team.harbor(name);
    const webhooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    const [name, webhook] = [`${team.namespace}-hook`, `${team.namespace}.example.com`];
    await team.api.create(webhooks, {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "ValidatingWebhookConfiguration",
      metadata: { name },
      webhooks: [
        {
          name: webhook,
          admissionReviewVersions: ["v1"],
          sideEffects: "None",
          clientConfig: { url: NOWHERE },
          rules: [
            { apiGroups: ["goharbor.io"], apiVersions: ["*"], resources: ["harborclusters"], operations: ["UPDATE"] },
          ],
          namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": team.namespace } },
          matchConditions: [{ name: "one", expression: "request.name == 'harbor'" }],
        },
      ],
    });
    await eventually(() => assert.rejects(team.editS3({ accesskey: "x" }, "kubectl-edit"), { status: 500 }), 30_000);
    const from = (source: string, key: string) => ({ from: { source, key } });
    await team.bind("harbor-s3", {
      sources: [{ secret: { name: "bucket" } }],
      targets: [harborTarget({ accesskey: from("bucket", "accessKeyID") })],
    });
    const { status } = await team.until("harbor-s3", "WebhookFailed");
    assert.ok(status.targets[0].message.includes(`the admission webhook ${webhook}; `), status.targets[0].message);
    assert.doesNotMatch(status.targets[0].message, /127\.0\.0\.1|refused|Post/);
    await team.bind("other", {
      sources: [{ secret: { name: "other" } }],
      targets: [harborTarget({ regionendpoint: from("other", "endpoint") }, { name: "other" })],
    });
    await team.until("other", "Synced");
    await team.api.delete(`${webhooks}/${name}`);
    await eventually(() => team.editS3({ regionendpoint: "x" }, "kubectl-edit"), 30_000);
    // Without a change it retries every half minute.
    const rotated = secretText("access");
    await team.secret("bucket", { accessKeyID: rotated });
    await eventually(async () => assert.equal((await team.s3()).accesskey, rotated));
    await team.until("harbor-s3", "Synced");
  });

  it("to convert a kind is reported as ConversionFailed with its CRD by a target and a source, and ends by itself", async () => {
    const items = await Versioned.install([v1, { ...v1, name: "v1beta2" }]);
    const { team, group } = items;
    await items.make("main", { other: "x" });
    await items.bind("main");
    await team.until("main", "Synced");
    const crd = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/items.${group}`;
    const webhook = { conversionReviewVersions: ["v1"], clientConfig: { url: NOWHERE } };
    await team.api.merge(crd, { spec: { conversion: { strategy: "Webhook", webhook } } });
    await eventually(() => assert.rejects(team.api.get(items.path("v1", "main")), { status: 500 }), 30_000);
    const source = { name: "item", object: { apiVersion: `${group}/v1`, resource: "items", name: "main" } };
    const fields = [{ path: "data.copy", from: { source: "item", fieldPath: "spec.other" } }];
    await team.grant([{ apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch", "patch"] }], {
      role: "configmaps",
    });
    await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "copy" } });
    const copy = { apiVersion: "v1", kind: "ConfigMap", name: "copy", fields };
    await team.bind("copy", { sources: [source], targets: [copy] });
    await items.rotate();
    for (const name of ["main", "copy"]) {
      const { status } = await team.until(name, "ConversionFailed");
      const [{ message }] = status.conditions;
      assert.ok(message.includes(`CustomResourceDefinition items.${group} fails; `), message);
      assert.doesNotMatch(message, /127\.0\.0\.1|refused|Post/);
    }
    await team.api.merge(crd, { spec: { conversion: { strategy: "None", webhook: null } } });
    await eventually(() => team.api.get(items.path("v1", "main")), 30_000);
    // Without a change they retry every half minute.
    await team.api.merge(items.path("v1beta2", "main"), { spec: { other: "y" } });
    await items.rotate();
    await eventually(async () => assert.equal((await items.get("main")).spec.token, items.value), 45_000);
    const copied = `${team.path("v1", "configmaps")}/copy`;
    await eventually(async () => assert.equal((await team.api.get(copied)).data?.copy, "y"), 45_000);
    await Promise.all(["main", "copy"].map((name) => team.until(name, "Synced")));
  });
});
