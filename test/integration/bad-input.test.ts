/** An error in a target is reported on that target, with its own reason, before anything of the target is written. */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { foundIn, secretText } from "../controller/leak-detector.ts";
import { requestsFor } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { createNamespace, harborTarget, type TestNamespace, usualRules } from "../controller/test-namespace.ts";

const HARBORS = "goharbor.io/harborclusters";
const S3 = "spec.storage.spec.s3";

const accessKey = { path: `${S3}.accesskey`, from: { source: "bucket", key: "accessKeyID" } };

interface Case {
  /** The end of the sentence in the title of the test. */
  is: string;
  field: object;
  reason: string;
  says: RegExp;
}

const template = (is: string, text: string, says: RegExp, reason = "InvalidTemplate"): Case => ({
  is,
  field: { path: `${S3}.regionendpoint`, template: text },
  reason,
  says,
});

const path = (text: string, reason: string, says: RegExp): Case => ({
  is: `the path ${text}`,
  field: { path: text, from: { source: "bucket", key: "accessKeyID" } },
  reason,
  says,
});

const key = (is: string, name: string, reason: string, says: RegExp): Case => ({
  is,
  field: { path: `${S3}.regionendpoint`, from: { source: "bucket", key: name } },
  reason,
  says,
});

const cases: Case[] = [
  path(`${S3}.regionendpiont`, "UnknownField", /regionendpoint\?/),
  path("spec.imageSource", "UnknownField", /spec\.imageSource/),
  path(`${S3}.chunksize`, "InvalidValue", /accessKeyID of Secret \S+\/bucket/),
  path(`${S3}.secure`, "InvalidValue", /accessKeyID of Secret \S+\/bucket/),
  path("spec.database", "TypeMismatch", /object.* string/),
  path(`${S3}.bucket.name`, "TypeMismatch", /s3\.bucket/),
  key("a key that the Secret does not have", "nope", "KeyNotFound", /nope/),
  key("bytes that are not UTF-8", "binary", "NotUtf8", /binary of Secret \S+\/bucket/),
  template("a template of a key that the Secret does not have", "x{{bucket.nope}}", /nope/, "KeyNotFound"),
  template("a template of bytes that are not UTF-8", "x{{bucket.binary}}", /binary/, "NotUtf8"),
  template("a template with an unknown helper", "{{shout bucket.accessKeyID}}", /1:1: shout/),
  template("a template with a helper of Handlebars", "{{lookup bucket 'accessKeyID'}}", /lookup/),
  template("a template with a loop", "{{#each bucket}}{{this}}{{/each}}", /block/),
  template("a template with a partial", "{{> mine}}", /partial/),
  template("a template with a decorator", "{{* mine}}", /decorator/),
  template("a template that is not well-formed", "https://{{bucket.host", /template 1/),
  template("a template with an unclosed block", "{{#if bucket.host}}x", /template 1/),
  template("a template of a key with dots", "{{bucket.tls.crt}}", /\{\{bucket\.\[tls\.crt\]\}\}/),
  template("a template of no source", "{{nowhere.host}}", /nowhere.*bucket/, "InvalidBinding"),
  path("status.conditions", "ForbiddenPath", /status/),
  path('["status"].conditions', "ForbiddenPath", /status/),
  path("metadata.ownerReferences", "ForbiddenPath", /annotations and labels|annotation or label/),
  path('metadata["ownerReferences"]', "ForbiddenPath", /annotations and labels|annotation or label/),
  path("metadata.finalizers", "ForbiddenPath", /annotations and labels|annotation or label/),
  path('["metadata"]["finalizers"]', "ForbiddenPath", /annotations and labels|annotation or label/),
  path("metadata.name", "ForbiddenPath", /annotations and labels|annotation or label/),
  path("metadata", "ForbiddenPath", /annotations and labels|annotation or label/),
  path("metadata.annotations", "ForbiddenPath", /annotations and labels|annotation or label/),
  path("kind", "ForbiddenPath", /kind/),
  path("__proto__.polluted", "InvalidPath", /__proto__/),
  path('spec["__proto__"].polluted', "InvalidPath", /__proto__/),
  path("spec.constructor.prototype", "InvalidPath", /constructor/),
  path("spec..storage", "InvalidPath", /column 6/),
  path("metadata.annotations.example.com/key", "InvalidPath", /metadata\.annotations\["example\.com\/key"\]/),
  path("spec.database.spec.postgresql.hosts[0", "InvalidPath", /\[0\]/),
  path("spec.database.spec.postgresql.hosts[1].host", "ElementNotFound", /1 element/),
  path(`${S3}.accesskey.below`, "InvalidBinding", /overlap/),
  path("spec.storage", "InvalidBinding", /overlap/),
];

const bad = (field: object) => harborTarget({}, { fields: [accessKey, field] });
const good = harborTarget({}, { name: "other", fields: [accessKey] });
const specOf = (...targets: object[]) => ({ sources: [{ secret: { name: "bucket" } }], targets });

/** A team with all kinds of values in a Secret, and two HarborClusters. Returns the access key. */
async function prepare(team: TestNamespace): Promise<string> {
  const value = secretText("access");
  await team.secret("bucket", {
    accessKeyID: value,
    host: secretText("host"),
    "tls.crt": secretText("crt"),
    binary: Uint8Array.of(0xc3, 0x28, 0xff),
  });
  await team.harbor("harbor");
  await team.harbor("other");
  return value;
}

/** Waits until the binding reports the reason for its first target, and Synced for the second. */
async function untilOneIsBad(team: TestNamespace, reason: string): Promise<AnyObject> {
  const { status } = await team.until("harbor-s3", reason);
  assert.deepEqual(
    status.targets.map((target: AnyObject) => target.reason),
    [reason, "Synced"],
  );
  assert.equal(status.synced, "1/2");
  assert.equal(status.conditions[0].status, "False");
  assert.ok(status.conditions[0].message.endsWith(status.targets[0].message), status.conditions[0].message);
  assert.deepEqual(foundIn(JSON.stringify(status)), []);
  return status;
}

const patchesOf = async (team: TestNamespace, mark: number, resource: string, name: string) =>
  (await requestsFor(team, mark)).filter(
    (each) => each.verb === "patch" && each.resource === resource && each.name === name,
  );

describe("a binding with bad input", () => {
  for (const { is, field, reason, says } of cases) {
    it(`reports ${reason} for ${is}, writes no field there, writes the other target, and is Synced once it is fixed`, async () => {
      const team = await createNamespace();
      const value = await prepare(team);
      const mark = await auditLog().mark();
      await team.bind("harbor-s3", specOf(bad(field), good));
      const status = await untilOneIsBad(team, reason);
      assert.match(status.targets[0].message, says);
      assert.equal((await team.s3("other")).accesskey, value);
      assert.equal((await team.s3()).accesskey, undefined);
      assert.deepEqual(await patchesOf(team, mark, HARBORS, "harbor"), []);
      await team.rebind("harbor-s3", specOf(bad({ path: `${S3}.regionendpoint`, template: "s3" }), good));
      await team.until("harbor-s3", "Synced");
      const { accesskey, regionendpoint } = await team.s3();
      assert.deepEqual({ accesskey, regionendpoint }, { accesskey: value, regionendpoint: "s3" });
    });
  }

  it("reports the reason by an event too", async () => {
    const team = await createNamespace();
    await prepare(team);
    await team.bind("harbor-s3", specOf(bad({ path: "status.x", template: "x" }), good));
    await untilOneIsBad(team, "ForbiddenPath");
    await eventually(async () => {
      const [event] = (await team.events("harbor-s3")).filter(({ type }) => type === "Warning");
      assert.equal(event?.reason, "ForbiddenPath");
      assert.match(event.note, /status\.x/);
    });
  });

  for (const [apiVersion, kind] of [
    ["rbac.authorization.k8s.io/v1", "Role"],
    ["rbac.authorization.k8s.io/v1", "ClusterRoleBinding"],
    ["inlay.dev/v1alpha1", "SecretBinding"],
    ["admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"],
    ["admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"],
  ] as const) {
    it(`reports ForbiddenKind for the kind ${kind}, does not read it, and writes the other target`, async () => {
      const all = { apiGroups: [apiVersion.split("/")[0] as string], resources: ["*"], verbs: ["*"] };
      const team = await createNamespace();
      await team.grantInCluster([all]);
      const value = await prepare(team);
      const mark = await auditLog().mark();
      const fields = [{ path: 'metadata.annotations["example.com/key"]', template: "{{bucket.host}}" }];
      await team.bind("harbor-s3", specOf({ apiVersion, kind, name: "harbor-s3", fields }, good));
      await untilOneIsBad(team, "ForbiddenKind");
      assert.equal((await team.s3("other")).accesskey, value);
      const group = all.apiGroups[0] as string;
      const asked = (await requestsFor(team, mark)).filter((each) => each.as && each.resource.startsWith(`${group}/`));
      assert.deepEqual(asked, []);
    });
  }

  it("that misspells a kind or its version gets the one that was probably meant, or the advice to install it", async () => {
    const team = await createNamespace();
    await prepare(team);
    const named = (apiVersion: string, kind: string) => harborTarget({}, { apiVersion, kind, fields: [accessKey] });
    const beta = "goharbor.io/v1beta1";
    const targets = [
      named(beta, "harborcluster"),
      named(beta, "HarborClusters"),
      named(beta, "HarbrCluster"),
      named("goharbor.io/v1", "HarborCluster"),
      named("v1", "Deployment"),
      named(beta, "Sprocket"),
    ];
    await team.bind("harbor-s3", specOf(...targets));
    const { status } = await team.until("harbor-s3", "KindNotFound");
    assert.deepEqual(
      status.targets.map(({ reason, message }: AnyObject) => [reason, message.split(/; (.*)/)[1]]),
      [
        ["KindNotFound", "did you mean HarborCluster?"],
        ["KindNotFound", "did you mean HarborCluster?"],
        ["KindNotFound", "did you mean HarborCluster?"],
        ["KindNotFound", "HarborCluster is served in goharbor.io/v1beta1; correct apiVersion"],
        ["KindNotFound", "Deployment is served in apps/v1; correct apiVersion"],
        ["KindNotFound", "install its CRD, or correct apiVersion or kind"],
      ],
    );
  });

  it("that names one object twice, with and without its namespace, writes the first and refuses the second", async () => {
    const team = await createNamespace();
    const value = await prepare(team);
    const twin = harborTarget({ regionendpoint: { template: "twin" } }, { namespace: team.namespace });
    await team.bind("harbor-s3", specOf(harborTarget({}, { fields: [accessKey] }), twin));
    const { status } = await team.until("harbor-s3", "InvalidBinding");
    assert.match(status.conditions[0].message, /HarborCluster \S*harbor.* twice/);
    const { accesskey, regionendpoint } = await team.s3();
    assert.deepEqual({ accesskey, regionendpoint }, { accesskey: value, regionendpoint: undefined });
  });

  it("with a source whose name is a word of templates reports InvalidBinding when a template uses it", async () => {
    const team = await createNamespace();
    await prepare(team);
    await team.bind("harbor-s3", {
      sources: [{ secret: { name: "bucket" } }, { name: "lookup", secret: { name: "bucket" } }],
      targets: [bad({ path: `${S3}.regionendpoint`, template: "{{lookup.host}}" }), good],
    });
    const status = await untilOneIsBad(team, "InvalidBinding");
    assert.match(status.targets[0].message, /lookup/);
  });

  describe("with a value that the API server refuses", () => {
    const lock: Kind = {
      group: "bad-input.example.com",
      kind: "Lock",
      plural: "locks",
      scope: "Namespaced",
      spec: {
        type: "object",
        properties: {
          pin: { type: "string", pattern: "^[0-9]{4}$" },
          code: {
            type: "string",
            maxLength: 100,
            "x-kubernetes-validations": [
              { rule: "self.startsWith('open')", messageExpression: "'the server quotes: ' + self" },
            ],
          },
          level: { type: "string", enum: ["low", "high"] },
          short: { type: "string", maxLength: 3 },
          address: { type: "string", format: "email" },
          open: { type: "string", pattern: "^x+$" },
        },
      },
    };

    const long = "x".repeat(200_000);
    for (const [rule, field, right, reason, around = ""] of [
      ["a pattern", "pin", "1234", "InvalidValue"],
      ["a pattern that the server checks, because the value is long,", "open", long, "Rejected", long],
      ["a format that the server checks", "address", "a@example.com", "Rejected"],
      ["a CEL rule whose message quotes it", "code", "open sesame", "Rejected"],
      ["an enum", "level", "low", "InvalidValue"],
      ["a length", "short", "abc", "InvalidValue"],
    ] as const) {
      it(`because of ${rule} reports ${reason} without the value and without the server's text, and is Synced once it is right`, async () => {
        const team = await createNamespace({ rules: [...usualRules, mayWrite(lock)] });
        await installKind(team.api, lock);
        await createObject(team.api, lock, "lock", {}, team.namespace);
        const value = await prepare(team);
        const wrong = secretText("wrong");
        await team.secret("bucket", { pin: around + wrong });
        const target = {
          apiVersion: apiVersionOf(lock),
          kind: lock.kind,
          name: "lock",
          fields: [{ path: `spec.${field}`, from: { source: "bucket", key: "pin" } }],
        };
        await team.bind("harbor-s3", specOf(target, good));
        const status = await untilOneIsBad(team, reason);
        const text = JSON.stringify([status, await team.events("harbor-s3")]);
        assert.deepEqual(foundIn(text), []);
        assert.doesNotMatch(text, /Invalid value|should match|the server quotes|Unsupported|may not be more/);
        assert.equal((await team.s3("other")).accesskey, value);
        await team.secret("bucket", { pin: right });
        await team.until("harbor-s3", "Synced");
        assert.equal((await team.api.get(objectPath(lock, team.namespace, "lock"))).spec[field], right);
      });
    }
  });

  it("with a value that the API server can't decode, answering 500, reports TypeMismatch and writes a right one", async () => {
    const quotas = { apiGroups: [""], resources: ["resourcequotas"], verbs: ["get", "list", "watch", "patch"] };
    const team = await createNamespace({ rules: [...usualRules, quotas] });
    const value = await prepare(team);
    await team.api.create(team.path("v1", "resourcequotas"), { metadata: { name: "quota" }, spec: {} });
    await team.secret("bucket", { pods: secretText("pods") });
    const fields = [{ path: "spec.hard.pods", from: { source: "bucket", key: "pods" } }];
    await team.bind("harbor-s3", specOf({ apiVersion: "v1", kind: "ResourceQuota", name: "quota", fields }, good));
    const status = await untilOneIsBad(team, "TypeMismatch");
    assert.match(status.targets[0].message, /ResourceQuota \S+\/quota/);
    assert.doesNotMatch(status.targets[0].message, /convert|quantities/);
    assert.equal((await team.s3("other")).accesskey, value);
    await team.secret("bucket", { pods: "10" });
    await team.until("harbor-s3", "Synced");
    const quota = await team.api.get(`${team.path("v1", "resourcequotas")}/quota`);
    assert.equal(quota.spec.hard.pods, "10");
  });

  it("that was good before keeps what it wrote", async () => {
    const team = await createNamespace();
    const value = await prepare(team);
    const endpoint = (text: string) => ({ path: `${S3}.regionendpoint`, template: text });
    await team.bind("harbor-s3", specOf(bad(endpoint("https://{{bucket.accessKeyID}}")), good));
    await team.until("harbor-s3", "Synced");
    await team.rebind("harbor-s3", specOf(bad(endpoint("https://{{shout bucket.accessKeyID}}")), good));
    await untilOneIsBad(team, "InvalidTemplate");
    const rotated = secretText("rotated");
    await team.secret("bucket", { accessKeyID: rotated });
    await eventually(async () => assert.equal((await team.s3("other")).accesskey, rotated));
    // Both fields keep the old values together.
    const { accesskey, regionendpoint } = await team.s3();
    assert.deepEqual({ accesskey, regionendpoint }, { accesskey: value, regionendpoint: `https://${value}` });
    await team.rebind("harbor-s3", specOf(bad(endpoint("https://{{bucket.accessKeyID}}")), good));
    await team.until("harbor-s3", "Synced");
    assert.equal((await team.s3()).regionendpoint, `https://${rotated}`);
  });

  it("with a Secret that became invalid keeps what it wrote", async () => {
    const team = await createNamespace();
    const value = await prepare(team);
    await team.bind("harbor-s3", specOf(bad({ path: `${S3}.regionendpoint`, template: "{{bucket.host}}" }), good));
    await team.until("harbor-s3", "Synced");
    await team.secret("bucket", { host: Uint8Array.of(0xff, 0xfe), accessKeyID: secretText("rotated") });
    await untilOneIsBad(team, "NotUtf8");
    assert.equal((await team.s3()).accesskey, value);
  });
});
