/**
 * Shows that Inlay watches the dependencies of bindings by as few and as narrow streams as the permissions of their accounts
 * allow.
 */
import assert from "node:assert/strict";
import { untilMay } from "../controller/access.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { CONTROLLER, requestsFor, watchesFor } from "../controller/requests.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";
import {
  accessKeySpec,
  createNamespace,
  type Rule,
  type TestNamespace,
  usualRules,
} from "../controller/test-namespace.ts";

const READ = ["get", "list", "watch"];

/** Permission to read only Secrets of these names, and to write HarborClusters. */
const namedSecrets = (...resourceNames: string[]): Rule[] => [
  { apiGroups: [""], resources: ["secrets"], resourceNames, verbs: READ },
  { apiGroups: ["goharbor.io"], resources: ["harborclusters"], verbs: [...READ, "patch"] },
];

/** A binding of one Secret, or of two for two fields. */
const specOf = (...secrets: string[]) => ({
  sources: secrets.map((name) => ({ secret: { name } })),
  targets: [
    {
      apiVersion: "goharbor.io/v1beta1",
      kind: "HarborCluster",
      name: "harbor",
      fields: secrets.map((source, n) => ({
        path: ["spec.storage.spec.s3.accesskey", "spec.storage.spec.s3.regionendpoint"][n],
        from: { source, key: "value" },
      })),
    },
  ],
});

async function withSecrets(team: TestNamespace, ...names: string[]): Promise<void> {
  for (const name of names) await team.secret(name, { value: secretText(name) });
  await team.harbor();
}

/** The URLs of a kind's open streams as a team's accounts, without the resource version. */
async function openStreams(team: TestNamespace, mark: number, resource: string): Promise<string[]> {
  const open = (await watchesFor(team, mark)).filter((watch) => watch.open && watch.as && watch.resource === resource);
  return open.map(({ uri }) => addressOf(uri)).sort();
}

function addressOf(uri: string): string {
  const { pathname, searchParams } = new URL(uri, "https://server");
  const selector = searchParams.get("fieldSelector");
  return selector === null ? pathname : `${pathname}?${selector}`;
}

describe("streams:", () => {
  it("an account that may watch all Secrets of its namespace has one stream for them", async () => {
    const team = await createNamespace();
    const mark = await auditLog().mark();
    await withSecrets(team, "one", "two", "three");
    await team.bind("first", specOf("one", "two"));
    await team.until("first", "Synced");
    await team.harbor("other");
    await team.bind("second", { ...specOf("three"), targets: [{ ...specOf("three").targets[0], name: "other" }] });
    await team.until("second", "Synced");
    const secrets = (await watchesFor(team, mark)).filter(({ resource }) => resource === "secrets");
    assert.deepEqual(
      secrets.map(({ uri, as, open }) => [addressOf(uri), as, open]),
      [[team.path("v1", "secrets"), `system:serviceaccount:${team.namespace}:inlay`, true]],
    );
  });

  it("an account that may watch some Secrets by name has a stream for each name that bindings use", async () => {
    const team = await createNamespace({ rules: namedSecrets("one", "two") });
    const mark = await auditLog().mark();
    await withSecrets(team, "one", "two", "three");
    await team.bind("both", specOf("one", "two"));
    await team.until("both", "Synced");
    const path = team.path("v1", "secrets");
    assert.deepEqual(await openStreams(team, mark, "secrets"), [
      `${path}?metadata.name=one`,
      `${path}?metadata.name=two`,
    ]);
    const rotated = secretText("rotated");
    await team.secret("two", { value: rotated });
    await eventually(async () => assert.equal((await team.s3()).regionendpoint, rotated));
    const lists = (await requestsFor(team, mark)).filter(
      ({ verb, resource }) => verb === "list" && resource === "secrets",
    );
    assert.deepEqual([...new Set(lists.map(({ uri }) => addressOf(uri)))].sort(), [
      `${path}?metadata.name=one`,
      `${path}?metadata.name=two`,
    ]);
  });

  it("no stream of Secrets covers more than the account's namespace, and none is the controller's own", async () => {
    const mark = await auditLog().mark();
    const [one, two] = [await createNamespace(), await createNamespace()];
    for (const team of [one, two]) {
      await withSecrets(team, "one");
      await team.bind("harbor-s3", specOf("one"));
      await team.until("harbor-s3", "Synced");
    }
    // test/setup.ts checks this for each whole file. A denied impersonation is logged as the controller's own request.
    const secrets = (await auditLog().since(mark)).filter(
      ({ user, resource, code }) => user === CONTROLLER && resource === "secrets" && code !== 403,
    );
    assert.ok(secrets.length > 0);
    for (const { uri, as } of secrets) assert.notEqual(as, undefined, uri);
    // An account may see more by permissions of its own, which these accounts do not have.
    for (const team of [one, two]) {
      const theirs = secrets.filter(({ as }) => as === `system:serviceaccount:${team.namespace}:inlay`);
      assert.ok(theirs.length > 0);
      for (const { uri } of theirs) assert.ok(uri.startsWith(team.path("v1", "secrets")), uri);
    }
  });

  it("one stream covers the accounts called inlay of all namespaces", async () => {
    // The audit log has no end of a watch whose API server was killed, so only the watches of a new controller count.
    await stopSharedController();
    const mark = await auditLog().mark();
    const [one, two] = [await createNamespace(), await createNamespace()];
    for (const team of [one, two]) {
      await withSecrets(team, "one");
      await team.bind("harbor-s3", specOf("one"));
      await team.until("harbor-s3", "Synced");
    }
    // The watch is opened again every few minutes.
    await eventually(async () => {
      const watches = (await auditLog().watchesSince(mark)).filter(
        ({ user, resource }) => user === CONTROLLER && resource === "serviceaccounts",
      );
      const ofInlay = watches.filter(({ open, uri }) => open && addressOf(uri).endsWith("?metadata.name=inlay"));
      assert.deepEqual(
        ofInlay.map(({ uri, as }) => [addressOf(uri), as]),
        [["/api/v1/serviceaccounts?metadata.name=inlay", undefined]],
      );
    });
  });

  it("a kind that the platform allows the controller to watch has one stream for all bindings, and is read and written as the accounts", async () => {
    const kind: Kind = {
      group: "streams.example.com",
      kind: "Widget",
      plural: "widgets",
      scope: "Namespaced",
      spec: { type: "object", properties: { token: { type: "string" } } },
    };
    const role = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    const widgets = { apiGroups: [kind.group], resources: [kind.plural] };
    const resource = `${kind.group}/${kind.plural}`;
    const [one, two] = [await createNamespace(), await createNamespace()];
    await installKind(one.api, kind);
    await one.api.create(role, {
      metadata: { name: "streams-widgets", labels: { "inlay.dev/aggregate-to-controller": "true" } },
      rules: [{ ...widgets, verbs: READ }],
    });
    try {
      await untilMay(CONTROLLER, { verb: "watch", group: kind.group, resource: kind.plural });
      const mark = await auditLog().mark();
      const value = async (team: TestNamespace) =>
        (await team.api.get(objectPath(kind, team.namespace, "widget"))).spec.token as string;
      for (const team of [one, two]) {
        await team.grant([{ ...widgets, verbs: ["get", "patch"] }], { role: "widgets" });
        await team.secret("one", { value: secretText("one") });
        await createObject(team.api, kind, "widget", {}, team.namespace);
        const fields = [{ path: "spec.token", from: { source: "one", key: "value" } }];
        await team.bind("widget", {
          sources: [{ secret: { name: "one" } }],
          targets: [{ apiVersion: apiVersionOf(kind), kind: kind.kind, name: "widget", fields }],
        });
        await team.until("widget", "Synced");
        // A change of the target arrives by that stream.
        const before = await value(team);
        await team.api.merge(objectPath(kind, team.namespace, "widget"), { spec: { token: "drift" } });
        await eventually(async () => assert.equal(await value(team), before));
      }
      const watched = async () =>
        (await auditLog().watchesSince(mark))
          .filter((watch) => watch.user === CONTROLLER && watch.resource === resource)
          .map(({ uri, as, open }) => [addressOf(uri), as, open]);
      assert.deepEqual(await watched(), [[`/apis/${kind.group}/v1/widgets`, undefined, true]]);
      for (const team of [one, two]) {
        const requests = (await requestsFor(team, mark)).filter((each) => each.resource === resource);
        const made = new Set(requests.map(({ verb, as }) => `${verb} as ${as}`));
        const account = `system:serviceaccount:${team.namespace}:inlay`;
        assert.deepEqual([...made].sort(), [`get as ${account}`, `patch as ${account}`]);
      }
      await one.unbind("widget");
      assert.deepEqual(await watched(), [[`/apis/${kind.group}/v1/widgets`, undefined, true]]);
      await two.unbind("widget");
      await eventually(async () =>
        assert.deepEqual(await watched(), [[`/apis/${kind.group}/v1/widgets`, undefined, false]]),
      );
    } finally {
      await one.api.delete(`${role}/streams-widgets`);
    }
  });

  it("a stream stays open while a binding needs it, and closes with the last", async () => {
    const team = await createNamespace();
    const mark = await auditLog().mark();
    await withSecrets(team, "bucket");
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.bind("first", accessKeySpec());
    await team.until("first", "Synced");
    await team.harbor("other");
    await team.bind("second", accessKeySpec({ name: "other" }));
    await team.until("second", "Synced");
    const path = team.path("v1", "secrets");
    await team.unbind("first");
    assert.deepEqual(await openStreams(team, mark, "secrets"), [path]);
    await team.unbind("second");
    await eventually(async () => {
      const watches = await watchesFor(team, mark);
      assert.deepEqual(
        watches.filter(({ open }) => open),
        [],
      );
      assert.equal(watches.filter(({ resource }) => resource === "secrets").length, 1);
    });
  });

  it("the stream of an object closes when the binding no longer names it", async () => {
    const team = await createNamespace({ rules: namedSecrets("one", "two") });
    const mark = await auditLog().mark();
    await withSecrets(team, "one", "two");
    await team.bind("harbor-s3", specOf("one"));
    await team.until("harbor-s3", "Synced");
    await team.rebind("harbor-s3", specOf("two"));
    await team.until("harbor-s3", "Synced");
    const path = team.path("v1", "secrets");
    await eventually(async () =>
      assert.deepEqual(await openStreams(team, mark, "secrets"), [`${path}?metadata.name=two`]),
    );
  });

  it("the streams of an account close when the binding uses another account", async () => {
    const team = await createNamespace();
    const mark = await auditLog().mark();
    await withSecrets(team, "one");
    await team.bind("harbor-s3", specOf("one"));
    await team.until("harbor-s3", "Synced");
    await team.createAccount("rotator");
    await team.grant(usualRules, { account: "rotator", role: "rotator" });
    await team.rebind("harbor-s3", { serviceAccountName: "rotator" });
    await team.until("harbor-s3", "ImpersonationForbidden");
    await eventually(async () => assert.deepEqual(await openStreams(team, mark, "secrets"), []));
  });
});
