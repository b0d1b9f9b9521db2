/** A field that can't be changed on an existing object. The binding reports its path and the ways to fix it. */
import assert from "node:assert/strict";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { foundIn, secretText } from "../controller/leak-detector.ts";
import { createNamespace, type TestNamespace, usualRules } from "../controller/test-namespace.ts";

const keep = { rule: "self == oldSelf" };
const fixed: Kind = {
  group: "immutable.example.com",
  kind: "Fixed",
  plural: "fixeds",
  spec: {
    type: "object",
    required: ["parent"],
    "x-kubernetes-validations": [{ rule: "self.parent == oldSelf.parent" }],
    properties: {
      silent: { type: "string", maxLength: 100, "x-kubernetes-validations": [keep] },
      worded: { type: "string", maxLength: 100, "x-kubernetes-validations": [{ ...keep, message: "is immutable" }] },
      quoted: {
        type: "string",
        maxLength: 100,
        "x-kubernetes-validations": [{ ...keep, messageExpression: "'immutable, so not ' + self" }],
      },
      parent: { type: "string", maxLength: 100 },
      free: { type: "string" },
    },
  },
};

const mayWriteBuiltins = {
  apiGroups: [""],
  resources: ["secrets", "services"],
  verbs: ["get", "list", "watch", "patch"],
};
const before = { silent: "old", worded: "old", quoted: "old", parent: "old", free: "old" };

async function newFixedTeam(): Promise<TestNamespace> {
  const team = await createNamespace({ rules: [...usualRules, mayWrite(fixed), mayWriteBuiltins] });
  await installKind(team.api, fixed);
  await createObject(team.api, fixed, "one", before, team.namespace);
  return team;
}

const field = (path: string, key = "value") => ({ path, from: { source: "bucket", key } });
const onFixed = (fields: object[], more: object = {}) => ({
  apiVersion: apiVersionOf(fixed),
  kind: fixed.kind,
  name: "one",
  onConflict: "Force",
  fields,
  ...more,
});
const specOf = (...targets: object[]) => ({ sources: [{ secret: { name: "bucket" } }], targets });
const fixedSpec = async (team: TestNamespace) => (await team.api.get(objectPath(fixed, team.namespace, "one"))).spec;

async function untilImmutable(team: TestNamespace, paths: string): Promise<void> {
  const { status } = await team.until("bind", "Immutable");
  const { message } = status.targets[0];
  assert.ok(message.startsWith(`${paths} `), message);
  assert.match(message, /mode: Once.*delete the object/);
  assert.deepEqual(foundIn(JSON.stringify([status, await team.events("bind")])), []);
}

describe("a field that can't be changed any more", () => {
  for (const name of ["silent", "worded", "quoted", "parent"]) {
    it(`by a rule of a CRD (${name}) reports Immutable with its path, and is written when the object is recreated`, async () => {
      const team = await newFixedTeam();
      const value = secretText("new");
      await team.secret("bucket", { value, free: "new" });
      await team.bind("bind", specOf(onFixed([field(`spec.${name}`), field("metadata.labels.free", "free")])));
      await untilImmutable(team, `spec.${name}`);
      assert.deepEqual(await fixedSpec(team), before);
      await team.api.delete(objectPath(fixed, team.namespace, "one"));
      const { [name as "silent"]: _, ...rest } = before;
      await createObject(team.api, fixed, "one", name === "parent" ? { ...rest, parent: value } : rest, team.namespace);
      await team.until("bind", "Synced");
      assert.equal((await fixedSpec(team))[name], value);
    });
  }

  it("that another manager owns is Immutable, and not a Conflict with the advice to take it over", async () => {
    const team = await newFixedTeam();
    await team.secret("bucket", { value: secretText("new") });
    for (const name of ["silent", "parent"]) {
      await team.bind(name, specOf(onFixed([field(`spec.${name}`)], { onConflict: "Fail" })));
      const { status } = await team.until(name, "Immutable");
      assert.match(status.targets[0].message, new RegExp(`^spec\\.${name} belongs to .* Force would not help`));
    }
    assert.deepEqual(await fixedSpec(team), before);
  });

  it("stays as it was written with mode: Once, and the binding is Synced", async () => {
    const team = await newFixedTeam();
    await team.secret("bucket", { value: "old" });
    await team.bind("bind", specOf(onFixed([field("spec.silent")])));
    await team.until("bind", "Synced");
    await team.secret("bucket", { value: secretText("rotated") });
    await untilImmutable(team, "spec.silent");
    await team.rebind("bind", specOf(onFixed([field("spec.silent")], { mode: "Once" })));
    await team.until("bind", "Synced");
    assert.deepEqual(await fixedSpec(team), before);
  });

  it("of built-in kinds is reported too: a Secret's type, data of an immutable one, a Service's address", async () => {
    const team = await newFixedTeam();
    await team.secret("bucket", { value: secretText("new"), address: "10.0.0.250" });
    await team.secret("typed", { a: "b" });
    await team.api.create(team.path("v1", "secrets"), {
      metadata: { name: "sealed" },
      immutable: true,
      data: { a: "Yg==" },
    });
    await team.api.create(team.path("v1", "services"), { metadata: { name: "web" }, spec: { ports: [{ port: 80 }] } });
    const on = (kind: string, name: string, path: string, key: string) =>
      ({ apiVersion: "v1", kind, name, onConflict: "Force", fields: [field(path, key)] }) as const;
    const targets = [
      on("Secret", "typed", "type", "address"),
      on("Secret", "sealed", "data.a", "value"),
      on("Service", "web", "spec.clusterIP", "address"),
    ];
    await team.bind("bind", specOf(...targets));
    await eventually(async () => {
      const { status } = await team.until("bind", "Immutable");
      const reported = status.targets.map(({ reason, message }: { reason: string; message: string }) => [
        reason,
        message.split(" ")[0],
      ]);
      assert.deepEqual(reported, [
        ["Immutable", "type"],
        ["Immutable", "data.a"],
        ["Immutable", "spec.clusterIP"],
      ]);
    });
  });
});
