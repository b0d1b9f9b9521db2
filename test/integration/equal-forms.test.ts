/**
 * Shows that a value which the API server stores in another form is written once: changes of anything else in the object,
 * and a restart of the controller, cause no write. A change of the stored form does.
 */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { type Through, through } from "../controller/barrier.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { mutate } from "../controller/mutating.ts";
import { auditLog } from "../controller/shared.ts";
import { createNamespace, RESTARTED_WITHIN_MS, type TestNamespace } from "../controller/test-namespace.ts";
import { deployment, rolloutRules } from "../controller/workloads.ts";

const CHANGES = 20;
const text = { type: "string" };
const part = { type: "object", properties: { a: text, b: { ...text, default: "b" }, c: { ...text, nullable: true } } };
/** Without the status subresource, each change of an object has to be looked at. */
const widget: Kind = {
  group: "forms.example.com",
  kind: "Widget",
  plural: "widgets",
  spec: {
    type: "object",
    properties: {
      host: text,
      token: text,
      note: text,
      part,
      one: { ...part, "x-kubernetes-map-type": "atomic" },
      list: { type: "array", items: part },
      set: { type: "array", items: text, "x-kubernetes-list-type": "set" },
    },
  },
};

interface Target {
  apiVersion: string;
  kind: string;
  path: string;
  through: Through;
}

const widgets = async (): Promise<{ team: TestNamespace; target: Target }> => {
  const team = await createNamespace({ rules: [...rolloutRules, mayWrite(widget)] });
  await installKind(team.api, widget);
  await createObject(team.api, widget, "one", { note: "n", part: { c: "theirs" }, set: ["z"] }, team.namespace);
  const path = objectPath(widget, team.namespace, "one");
  const barrier = through(widget, "spec.token");
  return { team, target: { apiVersion: apiVersionOf(widget), kind: widget.kind, path, through: barrier } };
};

const deployments = async (): Promise<{ team: TestNamespace; target: Target }> => {
  const team = await createNamespace({ rules: rolloutRules });
  await team.api.create(team.path("apps/v1", "deployments"), deployment("one", { replicas: 0 }));
  const path = `${team.path("apps/v1", "deployments")}/one`;
  const kind = { apiVersion: "apps/v1", kind: "Deployment" };
  const object = (name: string) => deployment(name, { replicas: 0 });
  const field = "spec.template.metadata.annotations.pulse";
  return { team, target: { ...kind, path, through: { ...kind, plural: "deployments", object, field } } };
};

/** Writes the keys of a Secret to the paths, and waits until they are stored. */
async function bind(team: TestNamespace, { apiVersion, kind }: Target, fields: readonly object[], source: object) {
  await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "values" }, data: source });
  await team.bind("forms", {
    acknowledge: ["ReadableCopies"],
    sources: [{ configMap: { name: "values" } }],
    targets: [{ apiVersion, kind, name: "one", fields }],
  });
  await team.until("forms", "Synced");
}

const from = (path: string, key: string, as?: string) => ({ path, from: { source: "values", key }, ...(as && { as }) });

const isWrite = ({ verb, name }: { verb: string; name: string }) => verb === "patch" && name === "one";

/** Changes other parts of the object. Returns the writes that this caused. */
async function writesAfterChanges(team: TestNamespace, { path, through, kind }: Target): Promise<object[]> {
  const requests = await team.requestsDuring(async () => {
    for (let n = 0; n < CHANGES; n++) {
      const other = kind === "Deployment" ? { minReadySeconds: n } : { note: `${n}` };
      await team.api.merge(path, { metadata: { labels: { n: `${n}` } }, ...(n % 2 === 0 && { spec: other }) });
    }
  }, through);
  return requests.filter(isWrite);
}

/** Starts the controller again. Returns the writes that this caused. */
async function writesAfterRestart(team: TestNamespace, { through, path }: Target): Promise<object[]> {
  const mark = await auditLog().mark();
  await team.controller.stop();
  await team.api.merge(path, { metadata: { labels: { n: "restarted" } } });
  await team.controller.start();
  await team.until("forms", "Synced", RESTARTED_WITHIN_MS);
  await team.barrier({ through });
  const writes = await auditLog().controllerWritesSince(mark);
  return writes.filter((each) => each.namespace === team.namespace && isWrite(each));
}

/** Installs a policy that stores each host, and the field `c` of each first element, in lower case. */
async function lowerCase(team: TestNamespace): Promise<void> {
  await createObject(team.api, widget, "probe", {}, team.namespace);
  const lowered = (when: string, field: string, pointer: string) =>
    `(${when} ? [JSONPatch{op: "replace", path: "${pointer}", value: ${field}.lowerAscii()}] : [])`;
  const element = "object.spec.list.size() > 0 && has(object.spec.list[0].c)";
  await mutate(
    team,
    `${team.namespace}-lower`,
    {
      operations: ["CREATE", "UPDATE"],
      apiGroups: [widget.group],
      resources: [widget.plural],
      when: "has(object.spec)",
      patch: [
        lowered("has(object.spec.host)", "object.spec.host", "/spec/host"),
        lowered(`has(object.spec.list) && ${element}`, "object.spec.list[0].c", "/spec/list/0/c"),
      ].join(" + "),
    },
    async () => {
      const { spec } = await team.api.merge(objectPath(widget, team.namespace, "probe"), { spec: { host: "Probe" } });
      assert.equal(spec.host, "probe");
    },
  );
}

describe("a value that the API server stores in another form", function () {
  this.timeout("3m");

  it("such as a quantity, an empty text or false, is not written again in a built-in kind", async () => {
    const { team, target } = await deployments();
    const container = "spec.template.spec.containers[name=app]";
    await bind(
      team,
      target,
      [
        from(`${container}.resources.limits.memory`, "memory"),
        from(`${container}.resources.limits.cpu`, "cpu", "integer"),
        from(`${container}.env[name=EMPTY].value`, "empty"),
        from("spec.template.spec.hostNetwork", "no", "boolean"),
        from("spec.template.spec.tolerations", "tolerations", "json"),
      ].map((field) => ({ ...field, ...(field.path.includes("env[") && { onMissingElement: "Append" }) })),
      {
        memory: "1024Mi",
        cpu: "1",
        empty: "",
        no: "false",
        tolerations: '[{"key":"a","value":""}]',
      },
    );
    assert.deepEqual(await writesAfterChanges(team, target), []);
    assert.deepEqual(await writesAfterRestart(team, target), []);
    const limits = async () => (await team.api.get(target.path)).spec.template.spec.containers[0].resources.limits;
    assert.deepEqual(await limits(), { memory: "1Gi", cpu: "1" });
    const containers = [{ name: "app", resources: { limits: { memory: "2Gi" } } }];
    await team.api.apply(
      target.path,
      {
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name: "one" },
        spec: { template: { spec: { containers } } },
      },
      "rival",
      true,
    );
    await eventually(async () => assert.equal((await limits()).memory, "1Gi"));
  });

  it("with defaults and fields of others beside it, is not written again in a custom resource", async () => {
    const { team, target } = await widgets();
    await bind(
      team,
      target,
      [
        from("spec.part", "part", "json"),
        from("spec.one", "part", "json"),
        from("spec.list", "list", "json"),
        from("spec.set", "set", "json"),
      ],
      { part: '{"a":"ours"}', list: '[{"a":"x","c":null}]', set: '["y"]' },
    );
    const { spec } = await team.api.get(target.path);
    assert.deepEqual(
      [spec.part, spec.one],
      [
        { a: "ours", b: "b", c: "theirs" },
        { a: "ours", b: "b" },
      ],
    );
    assert.deepEqual(await writesAfterChanges(team, target), []);
    assert.deepEqual(await writesAfterRestart(team, target), []);
    await team.api.merge(target.path, { spec: { one: { b: "changed" } } });
    await eventually(async () => assert.deepEqual((await team.api.get(target.path)).spec.one, { a: "ours", b: "b" }));
  });

  it("such as in lower case by a policy, is not written again until it or its source changes", async () => {
    const { team, target } = await widgets();
    await lowerCase(team);
    const host = secretText("Host");
    await bind(team, target, [from("spec.host", "host")], { host });
    const stored = async () => (await team.api.get(target.path)).spec.host;
    assert.equal(await stored(), host.toLowerCase());
    const events = (await team.events("forms")).filter(({ reason }) => reason === "Written");
    assert.equal(events.length, 1);
    assert.deepEqual(await writesAfterChanges(team, target), []);
    assert.deepEqual(await writesAfterRestart(team, target), []);
    assert.deepEqual(await writesAfterChanges(team, target), []);
    await team.api.merge(target.path, { spec: { host: "theirs" } });
    await eventually(async () => assert.equal(await stored(), host.toLowerCase()));
    await team.api.merge(`${team.path("v1", "configmaps")}/values`, { data: { host: "Other.Example" } });
    await eventually(async () => assert.equal(await stored(), "other.example"));
    await team.until("forms", "Synced");
    // The policy makes the same of it.
    await team.api.merge(`${team.path("v1", "configmaps")}/values`, { data: { host: "OTHER.Example" } });
    await team.barrier({ through: target.through });
    await team.until("forms", "Synced");
    assert.deepEqual(await writesAfterRestart(team, target), []);
  });
});

describe("a value in a list with one owner", function () {
  this.timeout("2m");

  it("is not written again if a policy lower-cases it, until another client changes it", async () => {
    const { team, target } = await widgets();
    await lowerCase(team);
    await team.api.merge(target.path, { spec: { list: [{ a: "x" }, { a: "y" }] } });
    const host = secretText("Host");
    await bind(team, target, [from("spec.list[a=x].c", "host")], { host });
    const list = async () => (await team.api.get(target.path)).spec.list;
    const stored = [
      { a: "x", b: "b", c: host.toLowerCase() },
      { a: "y", b: "b" },
    ];
    assert.deepEqual(await list(), stored);
    assert.deepEqual(await writesAfterChanges(team, target), []);
    assert.deepEqual(await writesAfterRestart(team, target), []);
    await team.api.merge(target.path, { spec: { list: [{ a: "x", c: "theirs" }, { a: "y" }] } });
    await eventually(async () => assert.deepEqual(await list(), stored));
  });
});

describe("onFirstSync: IfDifferent", function () {
  this.timeout("2m");

  async function restartsFor(team: TestNamespace, { apiVersion, kind }: Target, fields: object[], data: object) {
    await team.api.create(team.path("apps/v1", "deployments"), deployment("web", { replicas: 0 }));
    await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "values" }, data });
    await team.bind("forms", {
      sources: [{ configMap: { name: "values" } }],
      targets: [{ apiVersion, kind, name: "one", when: "AfterRollout", onConflict: "Force", fields }],
      rollout: { targets: [{ kind: "Deployment", name: "web" }], onFirstSync: "IfDifferent" },
    });
    await team.until("forms", "Synced");
    const { spec } = await team.api.get(`${team.path("apps/v1", "deployments")}/web`);
    return Object.keys(spec.template.metadata.annotations ?? {}).length;
  }

  it("restarts nothing for equal forms, defaults, and fields of others in an object", async () => {
    const { team, target } = await widgets();
    await team.api.merge(target.path, { spec: { part: { a: "ours" }, one: { a: "ours" } } });
    const fields = [from("spec.part", "part", "json"), from("spec.one", "part", "json")];
    assert.equal(await restartsFor(team, target, fields, { part: '{"a":"ours"}' }), 0);
    const written: AnyObject = await team.api.get(target.path);
    assert.deepEqual(written.spec.part, { a: "ours", b: "b", c: "theirs" });
  });

  it("restarts nothing for a value that a policy lower-cases, but for another case without a policy", async () => {
    const [lowered, plain] = [await widgets(), await widgets()];
    await lowerCase(lowered.team);
    for (const [{ team, target }, restarts] of [
      [lowered, 0],
      [plain, 1],
    ] as const) {
      await team.api.merge(target.path, { spec: { host: "host.example" } });
      assert.equal(await restartsFor(team, target, [from("spec.host", "host")], { host: "Host.Example" }), restarts);
    }
  });
});
