/**
 * Several bindings with the same path. The binding that has written it keeps it, else the oldest that can write it. The
 * others report that, and the next one writes when that binding is deleted.
 */
import assert from "node:assert/strict";
import { untilMay } from "../controller/access.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { CONTROLLER, requestsFor } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import {
  createNamespace,
  fieldsOf,
  harborTarget,
  s3Fields,
  type TestNamespace,
  usualRules,
} from "../controller/test-namespace.ts";

/** "At once" on a busy machine. */
const AT_ONCE_MS = 5_000;
/** The limit of reconciles for an edit: the edit, its status, and the retries meanwhile. */
const RECONCILES_AN_EDIT = 5;

/** Binds one key of a Secret to a field of HarborCluster `harbor`. */
async function bindTo(team: TestNamespace, name: string, field: string, more: object = {}): Promise<string> {
  const value = secretText(name);
  await team.secret(name, { value });
  await team.bind(name, specTo(name, field, more));
  return value;
}

function specTo(name: string, field: string, more: object = {}): object {
  const target = harborTarget({ [field]: { from: { source: name, key: "value" } } }, more);
  return { sources: [{ secret: { name } }], targets: [target] };
}

/**
 * Waits until new bindings are younger than a binding, because creation times are in seconds. Of two bindings of the same
 * second, the first by name is older. Most tests create theirs in the order of their names, and need not wait.
 */
async function untilYounger(team: TestNamespace, name: string): Promise<void> {
  const { metadata } = await team.binding(name);
  await eventually(async () => {
    const probe = await team.api.dryRun.create(team.path("v1", "configmaps"), { metadata: { name: "probe" } });
    assert.notEqual(probe.metadata.creationTimestamp, metadata.creationTimestamp);
  });
}

async function says(team: TestNamespace, name: string, reason: string): Promise<string> {
  const [{ message }] = (await team.until(name, reason)).status.conditions;
  return message;
}

/** Two teams. Of bindings of the same second, those of the first team are older. */
async function twoTeams(): Promise<[TestNamespace, TestNamespace]> {
  const [one, two] = [await createNamespace(), await createNamespace()];
  return one.namespace < two.namespace ? [one, two] : [two, one];
}

/** How often the HarborCluster `harbor` was patched for a team since a mark. */
async function patches(team: TestNamespace, mark: number): Promise<number> {
  return (await requestsFor(team, mark)).filter(
    ({ verb, resource, name, code }) =>
      verb === "patch" && resource === "goharbor.io/harborclusters" && name === "harbor" && code === 200,
  ).length;
}

/** How long 150 new bindings may take on a busy machine. */
const MANY_WITHIN_MS = 90_000;

describe("two bindings with the same path:", () => {
  it("the older one writes it; the younger one names the older one, and writes nothing to that target", async () => {
    const team = await createNamespace();
    await team.harbor();
    const first = await bindTo(team, "zz-first", "accesskey");
    await team.until("zz-first", "Synced");
    await untilYounger(team, "zz-first");
    await team.secret("second", { value: secretText("second") });
    const from = { source: "second", key: "value" };
    const targets = [harborTarget({ accesskey: { from }, regionendpoint: { from } })];
    await team.bind("second", { sources: [{ secret: { name: "second" } }], targets });
    const message = await says(team, "second", "Conflict");
    assert.match(message, /HarborCluster \S+\/harbor: .*spec\.storage\.spec\.s3\.accesskey/);
    assert.ok(message.includes(`SecretBinding ${team.namespace}/zz-first`), message);
    const { accesskey, regionendpoint } = await team.s3();
    assert.deepEqual([accesskey, regionendpoint], [first, undefined]);
  });

  it("of the same second: the first by name writes it", async () => {
    const team = await createNamespace();
    const names = ["b", "a", "c"];
    const values = new Map<string, string>();
    for (const name of names) {
      values.set(name, secretText(name));
      await team.secret(name, { value: values.get(name) as string });
    }
    await eventually(async () => {
      const made = await Promise.all(names.map((name) => team.bind(name, specTo(name, "accesskey"))));
      if (new Set(made.map(({ metadata }) => metadata.creationTimestamp)).size === 1) return;
      for (const name of names) await team.unbind(name);
      assert.fail("a second ended between them");
    });
    await team.harbor();
    await team.until("a", "Synced");
    for (const name of ["b", "c"])
      assert.match(await says(team, name, "Conflict"), new RegExp(`SecretBinding ${team.namespace}/a\\b`));
    await eventually(async () => assert.equal((await team.s3()).accesskey, values.get("a")));
  });

  it("the younger one writes it while the older one can't, and keeps it afterwards, also over a restart", async () => {
    const team = await createNamespace();
    await team.harbor();
    await team.bind("older", specTo("older", "accesskey"));
    await team.until("older", "SourceNotFound");
    const value = await bindTo(team, "younger", "accesskey");
    await team.until("younger", "Synced");
    await team.controller.stop();
    const late = secretText("late");
    await team.secret("older", { value: late });
    await team.controller.start();
    assert.ok((await says(team, "older", "Conflict")).includes(`SecretBinding ${team.namespace}/younger`));
    await team.barrier();
    await team.until("younger", "Synced");
    assert.equal((await team.s3()).accesskey, value);
    await team.unbind("younger");
    await team.until("older", "Synced", AT_ONCE_MS);
    assert.equal((await team.s3()).accesskey, late);
  });

  it("the older one keeps what it has written while its source is missing", async () => {
    const team = await createNamespace();
    await team.harbor();
    const value = await bindTo(team, "older", "accesskey");
    await team.until("older", "Synced");
    await bindTo(team, "younger", "accesskey", { onConflict: "Force" });
    await says(team, "younger", "Contended");
    await team.api.delete(`${team.path("v1", "secrets")}/older`);
    await team.until("older", "SourceNotFound");
    await team.barrier();
    await says(team, "younger", "Contended");
    assert.equal((await team.s3()).accesskey, value);
    const again = secretText("again");
    await team.secret("older", { value: again });
    await team.until("older", "Synced");
    assert.equal((await team.s3()).accesskey, again);
  });

  it("the older one does not block others by a field that it can't write or that is optional", async () => {
    const team = await createNamespace();
    await team.harbor();
    await team.applyS3({ regionendpoint: "theirs" }, "platform");
    const from = { source: "older", key: "value" };
    await team.secret("older", { value: secretText("older") });
    const targets = [harborTarget({ accesskey: { from }, regionendpoint: { from } })];
    await team.bind("older", { sources: [{ secret: { name: "older" } }], targets });
    await team.until("older", "Conflict");
    const value = await bindTo(team, "second", "accesskey");
    await team.until("second", "Synced");
    assert.equal((await team.s3()).accesskey, value);
    const missing = { name: "missing", optional: true, secret: { name: "missing" } };
    const left = harborTarget({ rootdirectory: { from: { source: "missing", key: "value" } } });
    await team.bind("optional", { sources: [missing], targets: [left] });
    await team.until("optional", "Synced");
    await bindTo(team, "third", "rootdirectory");
    await team.until("third", "Synced");
  });

  it("the younger one writes at once when the older one is deleted, and so does the third", async () => {
    const team = await createNamespace();
    await team.harbor();
    const values: string[] = [];
    for (const name of ["first", "second", "third"]) {
      values.push(await bindTo(team, name, "accesskey"));
      await team.until(name, values.length === 1 ? "Synced" : "Conflict");
    }
    await team.unbind("first");
    await team.until("second", "Synced", AT_ONCE_MS);
    assert.equal((await team.s3()).accesskey, values[1]);
    assert.match(await says(team, "third", "Conflict"), new RegExp(`SecretBinding ${team.namespace}/second\\b`));
    await team.api.delete(team.bindingPath("second"));
    await team.until("third", "Synced", AT_ONCE_MS);
    assert.equal((await team.s3()).accesskey, values[2]);
    const harbor = await team.api.get(team.harborPath());
    assert.equal(fieldsOf(harbor, team.manager("second")), undefined);
  });

  it("the younger one keeps what it owns when the older one is edited to name it, and the older one writes it after the release", async () => {
    const team = await createNamespace();
    await team.harbor();
    const older = await bindTo(team, "older", "regionendpoint");
    const value = secretText("younger");
    await team.secret("younger", { value });
    const from = { source: "younger", key: "value" };
    const annotation = { path: "metadata.annotations.younger", template: "here" };
    const fields = [{ path: "spec.storage.spec.s3.accesskey", from }, annotation];
    const targets = [{ ...harborTarget({}), fields }];
    await team.bind("younger", { sources: [{ secret: { name: "younger" } }], targets });
    await team.until("younger", "Synced");
    await team.rebind("older", specTo("older", "accesskey"));
    assert.ok((await says(team, "older", "Conflict")).includes(`SecretBinding ${team.namespace}/younger`));
    await team.until("younger", "Synced");
    assert.equal((await team.s3()).accesskey, value);
    await team.rebind("younger", { targets: [{ ...harborTarget({}), fields: [annotation] }] });
    await team.until("older", "Synced");
    await team.until("younger", "Synced");
    assert.equal((await team.s3()).accesskey, older);
    const harbor = await team.api.get(team.harborPath());
    assert.deepEqual(fieldsOf(harbor, team.manager("older")), s3Fields("accesskey"));
    assert.deepEqual(fieldsOf(harbor, team.manager("younger")), {
      "f:metadata": { "f:annotations": { "f:younger": {} } },
    });
  });

  it("the younger one does not write after a restart, whichever is reconciled first", async () => {
    const team = await createNamespace();
    await team.harbor();
    const older = await bindTo(team, "b-older", "accesskey");
    await untilYounger(team, "b-older");
    await bindTo(team, "a-younger", "accesskey");
    await team.until("b-older", "Synced");
    await says(team, "a-younger", "Conflict");
    for (const touched of ["a-younger", "b-older"]) {
      await team.controller.stop();
      const mark = await auditLog().mark();
      await team.controller.start();
      await team.api.merge(team.bindingPath(touched), { metadata: { annotations: { touched } } });
      await team.barrier();
      assert.equal(await patches(team, mark), 0);
      assert.equal((await team.s3()).accesskey, older);
    }
  });

  it("two that force it do not overwrite each other", async () => {
    const team = await createNamespace();
    await team.harbor();
    const force = { onConflict: "Force" };
    const first = await bindTo(team, "first", "accesskey", force);
    const mark = await auditLog().mark();
    await bindTo(team, "second", "accesskey", force);
    assert.match(await says(team, "second", "Contended"), new RegExp(`SecretBinding ${team.namespace}/first\\b`));
    await team.until("first", "Synced");
    await team.barrier();
    assert.ok((await patches(team, mark)) <= 1);
    assert.equal((await team.s3()).accesskey, first);
  });

  it("one that may not write there does not block the other, also when it may later", async () => {
    const [stranger, owner] = await twoTeams();
    await owner.harbor();
    const there = { namespace: owner.namespace };
    await bindTo(stranger, "squatter", "accesskey", there);
    await stranger.until("squatter", "Forbidden");
    const value = await bindTo(owner, "late", "accesskey");
    await owner.until("late", "Synced");
    assert.equal((await owner.s3()).accesskey, value);
    await stranger.grant(usualRules, { namespace: owner.namespace, role: "stranger" });
    assert.match(await says(stranger, "squatter", "Conflict"), new RegExp(`SecretBinding ${owner.namespace}/late`));
    await owner.until("late", "Synced");
    assert.equal((await owner.s3()).accesskey, value);
  });

  it("one that may only read there does not block the other, also when its own source is deleted", async () => {
    const [stranger, owner] = await twoTeams();
    await owner.harbor();
    const verbs = ["get", "list", "watch"];
    const look = [{ apiGroups: ["goharbor.io"], resources: ["harborclusters"], verbs }];
    await stranger.grant(look, { namespace: owner.namespace, role: "stranger" });
    await bindTo(stranger, "squatter", "accesskey", { namespace: owner.namespace });
    const [announced] = (await stranger.until("squatter", "Forbidden")).status.targets;
    assert.deepEqual(announced.pendingPaths, ["spec.storage.spec.s3.accesskey"]);
    await stranger.api.delete(`${stranger.path("v1", "secrets")}/squatter`);
    await stranger.until("squatter", "SourceNotFound");
    const value = await bindTo(owner, "late", "accesskey");
    await owner.until("late", "Synced");
    assert.equal((await owner.s3()).accesskey, value);
  });

  it("150 older ones without permissions, edited all the time, do not block it, and do not requeue each other", async () => {
    const stranger = await createNamespace({ rules: [] });
    const owner = await createNamespace();
    const names = Array.from({ length: 150 }, (_, n) => `squatter-${n}`);
    const spec = (onConflict: string) => specTo("none", "accesskey", { namespace: owner.namespace, onConflict });
    await Promise.all(names.map((name) => stranger.bind(name, spec("Fail"))));
    await stranger.until("squatter-149", "Forbidden", MANY_WITHIN_MS);
    await owner.barrier();
    await untilYounger(stranger, "squatter-149");
    const reconciles = () =>
      owner.controller.metric("controller_runtime_reconcile_total", 'controller="secretbinding"');
    const [before, mark] = [await reconciles(), await auditLog().mark()];
    let edits = 0;
    let isOver = false;
    const edit = async () => {
      for (; !isOver; edits++) {
        const round = Math.floor(edits / names.length);
        await stranger.rebind(names[edits % names.length] as string, spec(round % 2 === 0 ? "Force" : "Fail"));
      }
    };
    const editing = edit();
    try {
      await eventually(async () => assert.ok(edits >= 150));
      await owner.harbor();
      const value = await bindTo(owner, "late", "accesskey");
      // The edits continue until then. How long that takes depends on the load of the machine.
      await owner.until("late", "Synced");
      assert.equal((await owner.s3()).accesskey, value);
      await eventually(async () => assert.ok(edits >= 300));
    } finally {
      isOver = true;
      await editing;
      await stranger.api.delete(stranger.path("inlay.dev/v1alpha1", "secretbindings"));
    }
    const made = (await reconciles()) - before;
    assert.ok(made <= edits * RECONCILES_AN_EDIT, `${made} reconciles for ${edits} edits`);
    const reviews = (await requestsFor(stranger, mark)).filter(({ resource }) => /accessreviews/.test(resource));
    assert.ok(reviews.length <= edits, `${reviews.length} access reviews for ${edits} edits`);
  });

  it("one that may not write there learns nothing of the other, even if the platform permits its kind", async () => {
    const kind: Kind = {
      group: "strangers.example.com",
      kind: "Widget",
      plural: "widgets",
      spec: { type: "object", properties: { token: { type: "string" } } },
    };
    const [owner, stranger] = await twoTeams();
    await owner.grant([mayWrite(kind)], { role: "widgets" });
    await installKind(owner.api, kind);
    const role = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    await owner.api.create(role, {
      metadata: { name: "strangers-widgets", labels: { "inlay.dev/aggregate-to-controller": "true" } },
      rules: [{ apiGroups: [kind.group], resources: [kind.plural], verbs: ["get", "list", "watch"] }],
    });
    try {
      await untilMay(CONTROLLER, { verb: "watch", group: kind.group, resource: kind.plural });
      await createObject(owner.api, kind, "widget", {}, owner.namespace);
      const bindWidget = async (team: TestNamespace, name: string) => {
        await team.secret(name, { value: secretText(name) });
        const fields = [{ path: "spec.token", from: { source: name, key: "value" } }];
        const { namespace } = owner;
        await team.bind(name, {
          sources: [{ secret: { name } }],
          targets: [{ apiVersion: apiVersionOf(kind), kind: kind.kind, name: "widget", namespace, fields }],
        });
      };
      await bindWidget(owner, "private");
      await owner.until("private", "Synced");
      await bindWidget(stranger, "curious");
      await stranger.until("curious", "Forbidden");
      assert.doesNotMatch(JSON.stringify((await stranger.binding("curious")).status), /private/);
      await stranger.grant([mayWrite(kind)], { namespace: owner.namespace, role: "stranger" });
      assert.match(await says(stranger, "curious", "Conflict"), new RegExp(`SecretBinding ${owner.namespace}/private`));
    } finally {
      await owner.api.delete(`${role}/strangers-widgets`);
    }
  });

  it("they both write paths that don't overlap, and a path that contains the other overlaps it", async () => {
    const kind: Kind = {
      group: "first.example.com",
      kind: "Holder",
      plural: "holders",
      scope: "Cluster",
      spec: {
        type: "object",
        properties: {
          inner: { type: "object", additionalProperties: { type: "string" } },
          other: { type: "string" },
        },
      },
    };
    const team = await createNamespace();
    await installKind(team.api, kind);
    await createObject(team.api, kind, "holder", {});
    await team.grantInCluster([mayWrite(kind)]);
    await team.secret("bucket", { value: "1", other: "2" });
    const bind = (name: string, path: string, field: object) =>
      team.bind(name, {
        sources: [{ secret: { name: "bucket" } }],
        targets: [{ apiVersion: `${kind.group}/v1`, kind: kind.kind, name: "holder", fields: [{ path, ...field }] }],
      });
    const from = { from: { source: "bucket", key: "value" } };
    await bind("one", "spec.inner.a", from);
    await bind("other", "spec.inner.c", from);
    await bind("two", "spec.other", from);
    for (const name of ["one", "other", "two"]) await team.until(name, "Synced");
    await bind("whole", "spec.inner", { template: '{"b": "x"}', as: "json" });
    assert.match(
      await says(team, "whole", "Conflict"),
      new RegExp(`^Holder holder: (?=.*spec\\.inner).*SecretBinding ${team.namespace}/one\\b`),
    );
    const { spec } = await team.api.get(objectPath(kind, undefined, "holder"));
    assert.deepEqual(spec, { inner: { a: "1", c: "1" }, other: "1" });
  });
});
