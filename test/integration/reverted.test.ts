/** Shows that a binding claims only what the API server stores: a rule that changes a write is reported as Reverted. */
import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { inlay } from "../controller/cli.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { type Mutation, mutate } from "../controller/mutating.ts";
import { rolloutBarrier } from "../controller/rollout-barrier.ts";
import { createNamespace, RESTARTED_WITHIN_MS, type Rule, type TestNamespace } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const widget: Kind = {
  group: "reverted.example.com",
  kind: "Widget",
  plural: "widgets",
  spec: {
    type: "object",
    properties: {
      token: { type: "string" },
      note: { type: "string" },
      open: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
    },
  },
};
const configMaps: Rule = { apiGroups: [""], resources: ["configmaps"], verbs: ["create", "patch", "delete"] };
/** How long a binding may take to notice that a rule is gone: it retries every half minute. */
const RETRIED_WITHIN_MS = 60_000;

/** A team whose Deployment reads the Secret `keys`. A rule puts back the old spec when `PUT_BACK` is installed. */
async function newTeam(): Promise<{ team: TestNamespace; shop: Workloads; token: string }> {
  const team = await createNamespace({ rules: [...rolloutRules, mayWrite(widget), configMaps] });
  await installKind(team.api, widget);
  for (const name of ["widget", "probe"]) await createObject(team.api, widget, name, { token: "none" }, team.namespace);
  const token = secretText("first");
  await team.secret("keys", { token, id: "one" });
  const shop = new Workloads(team);
  await shop.deploy({ web: { env: { keys: ["token"] } } });
  return { team, shop, token };
}

const widgetPath = (team: TestNamespace, name = "widget") => objectPath(widget, team.namespace, name);
const tokenOf = async (team: TestNamespace) => (await team.api.get(widgetPath(team))).spec.token;

const PUT_BACK: Mutation = {
  operations: ["UPDATE"],
  apiGroups: [widget.group],
  resources: [widget.plural],
  when: "has(object.spec) && has(oldObject.spec) && object.spec != oldObject.spec",
  patch: '[JSONPatch{op: "replace", path: "/spec", value: oldObject.spec}]',
};

/** Puts every old spec back, until the returned function is called. */
function putBack(team: TestNamespace): Promise<() => Promise<void>> {
  return mutate(team, `${team.namespace}-back`, PUT_BACK, async () => {
    const before = await team.api.get(widgetPath(team, "probe"));
    const after = await team.api.merge(widgetPath(team, "probe"), { spec: { token: secretText("probe") } });
    assert.equal(after.spec.token, before.spec.token);
  });
}

const target = { apiVersion: apiVersionOf(widget), kind: widget.kind, name: "widget", onConflict: "Force" };
const field = { path: "spec.token", from: { source: "keys", key: "token" } };
const record = {
  apiVersion: "v1",
  kind: "ConfigMap",
  name: "record",
  when: "AfterRollout",
  fields: [{ path: "data.id", from: { source: "keys", key: "id" } }],
};
const spec = {
  acknowledge: ["ReadableCopies"],
  sources: [{ secret: { name: "keys" } }],
  targets: [{ ...target, fields: [field] }, record],
  rollout: { consumersOf: ["keys"] },
};

describe("a value that a policy puts back", function () {
  this.timeout("3m");

  it("is Reverted: no event, no restart, no later target, and few retries, until the policy is gone", async () => {
    const { team, shop, token } = await newTeam();
    const records = team.path("v1", "configmaps");
    await team.api.create(records, { metadata: { name: "record" } });
    const recorded = async () => (await team.api.get(`${records}/record`)).data?.id;
    await team.bind("keys", spec);
    await eventually(async () => assert.equal(await recorded(), "one"));
    await team.until("keys", "Synced");
    const remove = await putBack(team);
    const written = async () => (await team.events("keys")).filter(({ reason }) => reason === "Written").length;
    const before = await written();
    const rotated = secretText("second");
    await team.secret("keys", { token: rotated, id: "two" });
    const { status } = await team.until("keys", "Reverted");
    const failed = status.targets.find(({ kind }: AnyObject) => kind === widget.kind);
    assert.match(
      failed.message,
      /^spec\.token: .* stored the value from before\b.* kubectl get mutatingadmissionpolicies/,
    );
    assert.deepEqual(failed.paths, ["spec.token"]);
    assert.equal(await tokenOf(team), token);
    await rolloutBarrier(team);
    assert.deepEqual([await shop.restarts(), await recorded(), await written()], [{ web: 0 }, "one", before]);
    const requests = await team.requestsDuring(async () => {
      for (let n = 0; n < 20; n++) await team.api.merge(widgetPath(team), { metadata: { labels: { n: `${n}` } } });
    });
    const patches = requests.filter(({ verb, resource }) => verb === "patch" && resource.endsWith("/widgets"));
    assert.ok(patches.length <= 1, `${patches.length} writes`);
    await remove();
    await team.until("keys", "Synced", RETRIED_WITHIN_MS);
    await eventually(async () => assert.equal(await recorded(), "two"));
    assert.equal(await tokenOf(team), rotated);
    await shop.run(["web"]);
    assert.deepEqual(await shop.restarts(), { web: 1 });
  });

  const similar: [title: string, change: (token: string) => string][] = [
    ["case", (token) => token.toUpperCase()],
    ["white space", (token) => token.trimEnd()],
  ];
  for (const [title, change] of similar) {
    it(`is Reverted if it differs from the new value only in ${title}, also after a restart of the controller`, async () => {
      const { team, shop } = await newTeam();
      const token = `${secretText("line").toLowerCase()}\n`;
      await team.secret("keys", { token, id: "one" });
      await team.bind("keys", { ...spec, targets: [{ ...target, fields: [field] }] });
      await team.until("keys", "Synced");
      await putBack(team);
      await team.secret("keys", { token: change(token), id: "two" });
      await team.until("keys", "Reverted");
      await team.controller.stop();
      await team.api.merge(widgetPath(team), { metadata: { labels: { n: "restarted" } } });
      await team.controller.start();
      await rolloutBarrier(team);
      await team.until("keys", "Reverted", RESTARTED_WITHIN_MS);
      assert.equal(await tokenOf(team), token);
      assert.deepEqual(await shop.restarts(), { web: 0 });
    });
  }

  it("is Reverted in an object that keeps the keys that it drops, and they go when the policy does", async () => {
    const { team, shop } = await newTeam();
    const old = { user: "a", leaked: secretText("leaked"), deep: { n: 1 } };
    await team.secret("keys", { token: JSON.stringify(old) });
    const fields = [{ ...field, path: "spec.open.cfg", as: "json" }];
    await team.bind("keys", { ...spec, targets: [{ ...target, fields }] });
    await team.until("keys", "Synced");
    const remove = await putBack(team);
    await team.secret("keys", { token: '{"user":"a"}' });
    await team.until("keys", "Reverted");
    await team.controller.stop();
    await team.api.merge(widgetPath(team), { metadata: { labels: { n: "restarted" } } });
    await team.controller.start();
    await rolloutBarrier(team);
    await team.until("keys", "Reverted", RESTARTED_WITHIN_MS);
    const stored = async () => (await team.api.get(widgetPath(team))).spec.open.cfg;
    assert.deepEqual([await stored(), await shop.restarts()], [old, { web: 0 }]);
    await remove();
    await team.until("keys", "Synced", RETRIED_WITHIN_MS);
    assert.deepEqual(await stored(), { user: "a" });
  });

  it("is Reverted on the first write too, without an event, and so inlay diff reports it", async () => {
    const { team } = await newTeam();
    await putBack(team);
    await team.bind("keys", { ...spec, targets: [{ ...target, onRelease: "Remove", fields: [field] }] });
    const { apiVersion, kind, metadata, spec: stored } = await team.until("keys", "Reverted");
    assert.equal(await tokenOf(team), "none");
    const file = join(tmpdir(), `${team.namespace}.json`);
    const binding = { apiVersion, kind, metadata: { name: "keys", namespace: metadata.namespace }, spec: stored };
    await writeFile(file, JSON.stringify(binding));
    const { stdout } = await inlay(controlPlane().kubeconfigFile, "diff", "-f", file, "-o", "json");
    assert.equal(JSON.parse(stdout).bindings[0].targets[0].problem.reason, "Reverted", stdout);
    await rm(file);
    assert.deepEqual(await team.events("keys").then((all) => all.filter(({ reason }) => reason === "Written")), []);
  });
});

describe("an object that a binding creates", () => {
  const created = {
    apiVersion: "v1",
    kind: "ConfigMap",
    name: "made",
    create: { manifest: { data: { mode: "on" } } },
    fields: [{ path: "data.token", from: { source: "keys", key: "token" } }],
  };
  const only = { acknowledge: spec.acknowledge, sources: spec.sources, targets: [created] };

  for (const [operation, value] of [
    ["CREATE", '"fixed"'],
    ["UPDATE", "oldObject.data.token"],
  ] as const) {
    it(`is Reverted if a policy changes a value on ${operation}, without an event`, async () => {
      const { team } = await newTeam();
      const path = `${team.path("v1", "configmaps")}/made`;
      if (operation === "UPDATE") {
        await team.bind("keys", only);
        await team.until("keys", "Synced");
      }
      const policy: Mutation = {
        operations: [operation],
        apiGroups: [""],
        resources: ["configmaps"],
        when: 'has(object.data) && "token" in object.data',
        patch: `[JSONPatch{op: "replace", path: "/data/token", value: ${value}}]`,
      };
      let probes = 0;
      const collection = team.path("v1", "configmaps");
      const remove = await mutate(team, `${team.namespace}-${operation.toLowerCase()}`, policy, async () => {
        const name = `probe-${++probes}`;
        const first = await team.api.create(collection, { metadata: { name }, data: { token: "a" } });
        const last = await team.api.merge(`${collection}/${name}`, { data: { token: "b" } });
        assert.equal(
          operation === "CREATE" ? first.data.token : last.data.token,
          operation === "CREATE" ? "fixed" : "a",
        );
      });
      const claims = async () =>
        (await team.events("keys")).filter(({ reason }) => ["Created", "Written"].includes(reason)).length;
      const before = await claims();
      await team.secret("keys", { token: secretText("rotated") });
      if (operation === "CREATE") await team.bind("keys", only);
      const { status } = await team.until("keys", "Reverted");
      assert.match(status.targets[0].message, /^data\.token: /);
      assert.equal(await claims(), before);
      await remove();
      const again = secretText("again");
      await team.secret("keys", { token: again });
      await eventually(async () => {
        await team.until("keys", "Synced");
        assert.deepEqual((await team.api.get(path)).data, { mode: "on", token: again });
      });
    });
  }
});
