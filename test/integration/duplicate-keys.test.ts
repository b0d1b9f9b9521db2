/**
 * Elements with equal keys in lists of type map, which the API server only warns about. An apply of their keys replaces
 * all of them by one element, so Inlay never applies these keys.
 */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

const container = "spec.template.spec.containers[name=app]";
const labels = { app: "web" };
const env = [
  { name: "TOKEN", value: "first" },
  { name: "OTHER", value: "other" },
  { name: "TOKEN", value: "third" },
];
const ports = [
  { name: "web", containerPort: 8080, protocol: "TCP" },
  { name: "metrics", containerPort: 8080, protocol: "TCP" },
];
const deploymentOf = (more: object) => ({
  replicas: 0,
  selector: { matchLabels: labels },
  template: { metadata: { labels }, spec: { containers: [{ name: "app", image: "app", ...more }] } },
});

/** A team with the Secret `bucket`, and a Deployment with such elements that the manager `kubectl` created. */
async function createNamespaceWith(more: object = { env, ports }): Promise<{ team: TestNamespace; token: string }> {
  const reads = ["get", "list", "watch"];
  const team = await createNamespace({
    rules: [
      { apiGroups: [""], resources: ["secrets", "configmaps"], verbs: reads },
      { apiGroups: ["apps"], resources: ["deployments"], verbs: [...reads, "patch", "create", "delete"] },
    ],
  });
  const token = secretText("token");
  await team.secret("bucket", { token, port: "9090" });
  const path = `${team.path("apps/v1", "deployments")}?fieldManager=kubectl`;
  await team.api.create(path, { metadata: { name: "web" }, spec: deploymentOf(more) });
  return { team, token };
}

const pathOf = (team: TestNamespace) => `${team.path("apps/v1", "deployments")}/web`;
const appOf = async (team: TestNamespace) => (await team.api.get(pathOf(team))).spec.template.spec.containers[0];
const from = (key: string, more: object = {}) => ({ from: { source: "bucket", key }, ...more });
const port = from("port", { as: "integer" });

const bindingOf = (fields: Record<string, object>, target: object = {}) => ({
  sources: [{ secret: { name: "bucket" } }],
  targets: [
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      name: "web",
      onConflict: "Force",
      fields: Object.entries(fields).map(([path, field]) => ({ path, ...field })),
      ...target,
    },
  ],
});

async function bind(team: TestNamespace, fields: Record<string, object>, target: object = {}) {
  await team.bind("web", bindingOf(fields, target));
  await team.until("web", "Synced");
}

/** Changes the environment as another user. */
const editEnv = (team: TestNamespace, ...operations: { op: string; path: string; value?: unknown }[]) =>
  team.api.jsonPatch(
    pathOf(team),
    operations.map((each) => ({ ...each, path: `/spec/template/spec/containers/0/env${each.path}` })),
  );

const managers = async (team: TestNamespace): Promise<string[]> =>
  (await team.api.get(pathOf(team))).metadata.managedFields.map(({ manager }: AnyObject) => manager);

describe("a path to one of several elements with equal keys", () => {
  it("by its index changes only that element, now and in rotations", async () => {
    const { team, token } = await createNamespaceWith();
    await bind(team, { [`${container}.env[2].value`]: from("token") });
    assert.deepEqual((await appOf(team)).env, [env[0], env[1], { name: "TOKEN", value: token }]);
    const rotated = secretText("rotated");
    await team.secret("bucket", { token: rotated });
    await eventually(async () =>
      assert.deepEqual((await appOf(team)).env, [env[0], env[1], { name: "TOKEN", value: rotated }]),
    );
    await team.until("web", "Synced");
  });

  it("by another field than the keys changes only that element, beside other fields", async () => {
    const { team, token } = await createNamespaceWith();
    await bind(team, {
      [`${container}.ports[name=metrics].hostPort`]: port,
      [`${container}.env[name=OTHER].value`]: from("token"),
    });
    const app = await appOf(team);
    assert.deepEqual(app.ports, [ports[0], { ...ports[1], hostPort: 9090 }]);
    assert.deepEqual(app.env, [env[0], { name: "OTHER", value: token }, env[2]]);
  });

  it("is refused without Force if another manager set its value, and written if it has no value", async () => {
    const { team } = await createNamespaceWith();
    await team.bind("web", bindingOf({ [`${container}.env[2].value`]: from("token") }, { onConflict: "Fail" }));
    const { status } = await team.until("web", "Conflict");
    assert.match(status.conditions[0].message, /env\[2\]\.value belongs to "kubectl"/);
    const absent = { [`${container}.ports[name=metrics].hostPort`]: port };
    await team.rebind("web", bindingOf(absent, { onConflict: "Fail" }));
    await team.until("web", "Synced");
    const app = await appOf(team);
    assert.deepEqual([app.env, app.ports], [env, [ports[0], { ...ports[1], hostPort: 9090 }]]);
  });

  it("is released by Remove if it names the element by a field, and kept if it names it by its index", async () => {
    const { team, token } = await createNamespaceWith();
    const fields = {
      [`${container}.env[2].value`]: from("token"),
      [`${container}.ports[name=metrics].hostPort`]: port,
    };
    await bind(team, fields, { onRelease: "Remove" });
    await team.unbind("web");
    const app = await appOf(team);
    assert.deepEqual(app.ports, ports);
    assert.deepEqual(app.env, [env[0], env[1], { name: "TOKEN", value: token }]);
    assert.ok(!(await managers(team)).some((each) => each.startsWith("inlay")));
    await eventually(async () => {
      const notes = (await team.events("web")).filter(({ reason }) => reason === "ReleaseBlocked");
      assert.match(notes.map(({ note }) => note).join(), /env\[2\]\.value/);
    });
  });

  it("is released by Retain without a field manager of Inlay", async () => {
    const { team, token } = await createNamespaceWith();
    await bind(team, { [`${container}.env[2].value`]: from("token") });
    await team.unbind("web");
    await eventually(async () => assert.ok(!(await managers(team)).some((each) => each.startsWith("inlay"))));
    assert.deepEqual((await appOf(team)).env, [env[0], env[1], { name: "TOKEN", value: token }]);
  });
});

describe("an element that gets the keys of another one after its first write", () => {
  const second = { name: "TOKEN", value: "theirs" };

  it("is not written by its keys until it is unique again, and none of both is lost", async () => {
    const { team, token } = await createNamespaceWith({ env: env.slice(0, 2) });
    const fields = { [`${container}.env[name=TOKEN].value`]: from("token"), [`${container}.image`]: from("token") };
    await bind(team, fields);
    await editEnv(team, { op: "add", path: "/-", value: second });
    const rotated = secretText("rotated");
    await team.secret("bucket", { token: rotated });
    await team.until("web", "ElementNotUnique");
    const app = await appOf(team);
    assert.deepEqual([app.env, app.image], [[{ name: "TOKEN", value: token }, env[1], second], token]);
    await editEnv(team, { op: "remove", path: "/2" });
    await eventually(async () =>
      assert.deepEqual((await appOf(team)).env, [{ name: "TOKEN", value: rotated }, env[1]]),
    );
    await team.unbind("web");
    await eventually(async () => assert.ok(!(await managers(team)).some((each) => each.startsWith("inlay"))));
  });

  it("is written alone if the path has its index, and by its keys again when it is unique", async () => {
    const { team } = await createNamespaceWith({ env: env.slice(0, 2) });
    await bind(team, { [`${container}.env[0].value`]: from("token") }, { onRelease: "Remove" });
    await editEnv(team, { op: "add", path: "/-", value: second });
    const rotated = secretText("rotated");
    await team.secret("bucket", { token: rotated });
    const wanted = [{ name: "TOKEN", value: rotated }, env[1]];
    await eventually(async () => assert.deepEqual((await appOf(team)).env, [...wanted, second]));
    await editEnv(team, { op: "remove", path: "/2" });
    const again = secretText("again");
    await team.secret("bucket", { token: again });
    await eventually(async () => assert.deepEqual((await appOf(team)).env, [{ name: "TOKEN", value: again }, env[1]]));
    await team.until("web", "Synced");
    await team.unbind("web");
    assert.deepEqual((await appOf(team)).env, [{ name: "TOKEN" }, env[1]]);
  });
});

describe("a value that has a list of type map in it", () => {
  const all = [{ name: "TOKEN", value: "all" }];
  const settings = { sources: [{ configMap: { name: "settings" } }] };

  async function bindAll(team: TestNamespace, list: object[], more: object = {}) {
    const data = { env: JSON.stringify(list), image: "new" };
    await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "settings" }, data });
    const fields = { [`${container}.env`]: { from: { source: "settings", key: "env" }, as: "json" }, ...more };
    await team.bind("web", { ...bindingOf(fields), ...settings });
  }

  it("is not written while the target has several elements for one of the value", async () => {
    const { team } = await createNamespaceWith();
    await bindAll(team, all);
    const { status } = await team.until("web", "ElementNotUnique");
    assert.match(status.conditions[0].message, /env: the elements \[0\] and \[2\] of the target have the same name/);
    assert.deepEqual((await appOf(team)).env, env);
    await editEnv(team, { op: "remove", path: "/2" });
    await team.until("web", "Synced");
    assert.deepEqual((await appOf(team)).env, [all[0], env[1]]);
  });

  it("is not written by a patch either", async () => {
    const { team } = await createNamespaceWith();
    const more = { [`${container}.ports[1].name`]: { from: { source: "settings", key: "image" } } };
    await bindAll(team, all, more);
    await team.until("web", "ElementNotUnique");
    assert.deepEqual((await appOf(team)).env, env);
  });

  it("is written beside elements with equal keys that it does not have", async () => {
    const { team } = await createNamespaceWith();
    await bindAll(team, [{ name: "OTHER", value: "all" }]);
    await team.until("web", "Synced");
    assert.deepEqual((await appOf(team)).env, [env[0], { name: "OTHER", value: "all" }, env[2]]);
  });

  it("is invalid with equal keys itself", async () => {
    const { team } = await createNamespaceWith({ env: [] });
    await bindAll(team, [...all, ...all]);
    const { status } = await team.until("web", "InvalidValue");
    assert.match(status.conditions[0].message, /env: the elements \[0\] and \[1\] to write have the same name/);
  });
});

describe("an object that a binding creates", () => {
  const madeOf = (list: object[], more: object = {}) =>
    bindingOf(
      { [`${container}.env[name=SECRET].value`]: from("token") },
      { name: "made", create: { manifest: { spec: deploymentOf({ env: list }) }, ...more } },
    );
  const list = [{ name: "SECRET" }, { name: "OTHER", value: "other" }];
  const madePath = (team: TestNamespace) => `${team.path("apps/v1", "deployments")}/made`;
  const envOf = async (team: TestNamespace) =>
    (await team.api.get(madePath(team))).spec.template.spec.containers[0].env;

  it("is not corrected while another user's element has the keys of one of the manifest, and nothing is lost", async () => {
    const { team, token } = await createNamespaceWith();
    await team.bind("web", madeOf(list));
    await team.until("web", "Synced");
    const theirs = { name: "OTHER", value: "theirs" };
    const at = "/spec/template/spec/containers/0/env";
    await team.api.jsonPatch(madePath(team), [{ op: "add", path: `${at}/-`, value: theirs }]);
    await team.until("web", "ElementNotUnique");
    assert.deepEqual(await envOf(team), [{ name: "SECRET", value: token }, list[1], theirs]);
    await team.api.jsonPatch(madePath(team), [{ op: "remove", path: `${at}/2` }]);
    await team.until("web", "Synced");
    const rotated = secretText("rotated");
    await team.secret("bucket", { token: rotated });
    await eventually(async () => assert.deepEqual(await envOf(team), [{ name: "SECRET", value: rotated }, list[1]]));
  });

  it("is not created or adopted with equal keys, because it could not be corrected", async () => {
    const { team } = await createNamespaceWith();
    await team.bind("web", madeOf([...list, ...list.slice(1)]));
    await team.until("web", "InvalidValue");
    assert.equal(await team.api.find(madePath(team)), undefined);
    await team.api.create(team.path("apps/v1", "deployments"), {
      metadata: { name: "made" },
      spec: deploymentOf({ env: [...list, ...list.slice(1)] }),
    });
    await team.rebind("web", madeOf(list, { adopt: "Any" }));
    await team.until("web", "ElementNotUnique");
    assert.deepEqual(await envOf(team), [...list, ...list.slice(1)]);
  });
});
