/**
 * Shows that a field can contain all data of a source, updated and released key by key, without changes to the keys of others.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { rolloutBarrier } from "../controller/rollout-barrier.ts";
import { createNamespace, fieldsOf, type TestNamespace, usualRules } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const app: Kind = {
  group: "whole.example.com",
  kind: "App",
  plural: "apps",
  spec: {
    type: "object",
    properties: {
      env: { type: "object", additionalProperties: { type: "string" } },
      limits: { type: "object", additionalProperties: { type: "integer" } },
      free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
    },
  },
};

const mayWriteData = {
  apiGroups: [""],
  resources: ["secrets", "configmaps"],
  verbs: ["get", "list", "watch", "patch"],
};
const text = (value: string) => Buffer.from(value).toString("base64");

async function newAppTeam(): Promise<TestNamespace> {
  const team = await createNamespace({ rules: [...usualRules, mayWrite(app), mayWriteData] });
  await installKind(team.api, app);
  await createObject(team.api, app, "one", { env: { THEIRS: "theirs" } }, team.namespace);
  return team;
}

const path = (team: TestNamespace) => objectPath(app, team.namespace, "one");
const specOf = async (team: TestNamespace) => (await team.api.get(path(team))).spec;
const dropKey = (team: TestNamespace, name: string, key: string) =>
  team.api.merge(`${team.path("v1", "secrets")}/${name}`, { data: { [key]: null } });

const onApp = (...fields: object[]) => ({ apiVersion: apiVersionOf(app), kind: app.kind, name: "one", fields });
const onData = (kind: "Secret" | "ConfigMap", name: string, field = "data", source = "from") => ({
  apiVersion: "v1",
  kind,
  name,
  fields: [{ path: field, from: { source } }],
});
const bind = (team: TestNamespace, target: object, more: object = {}): Promise<AnyObject> =>
  team.bind("all", { sources: [{ secret: { name: "from" } }], targets: [target], ...more });
const env = { path: "spec.env", from: { source: "from" } };
const filtered = (filter: object) => onApp({ ...env, from: { source: "from", ...filter } });
const envOf = async (team: TestNamespace) => (await specOf(team)).env;
const untilHeld = (team: TestNamespace, expected: object) =>
  eventually(async () => assert.deepEqual(await envOf(team), { THEIRS: "theirs", ...expected }));

describe("all data of a source", () => {
  it("becomes an object of its keys, with text, base64 for bytes, and numbers as the field requires", async () => {
    const team = await newAppTeam();
    const bytes = randomBytes(24);
    await team.secret("from", { password: secretText("copied"), bytes });
    await team.secret("numbers", { cpu: "2", memory: "-5" });
    await team.secret("to", { theirs: "theirs" });
    await team.bind("all", {
      sources: [{ secret: { name: "from" } }, { secret: { name: "numbers" } }],
      targets: [
        onData("Secret", "to"),
        onApp(
          { path: "spec.env", from: { source: "numbers" } },
          { path: "spec.limits", from: { source: "numbers" } },
          { path: "spec.free.all", from: { source: "from" }, as: "bytes" },
        ),
      ],
    });
    await team.until("all", "Synced");
    const { data } = await team.api.get(`${team.path("v1", "secrets")}/from`);
    assert.deepEqual((await team.api.get(`${team.path("v1", "secrets")}/to`)).data, {
      ...data,
      theirs: text("theirs"),
    });
    const { env: written, limits, free } = await specOf(team);
    assert.deepEqual(written, { THEIRS: "theirs", cpu: "2", memory: "-5" });
    assert.deepEqual(limits, { cpu: 2, memory: -5 });
    assert.deepEqual(free.all, data);
  });

  it("of a ConfigMap includes binaryData where the field contains bytes, and is otherwise reported with its key", async () => {
    const team = await newAppTeam();
    const binary = Buffer.from([0xff, 0, 1]).toString("base64");
    const maps = team.path("v1", "configmaps");
    await team.api.create(maps, { metadata: { name: "from" }, data: { a: "é" }, binaryData: { b: binary } });
    await team.api.create(maps, { metadata: { name: "to" } });
    const sources = [{ configMap: { name: "from" } }];
    await bind(team, onData("ConfigMap", "to", "binaryData"), { sources });
    await team.until("all", "Synced");
    assert.deepEqual((await team.api.get(`${maps}/to`)).binaryData, { a: text("é"), b: binary });
    await team.bind("texts", { sources, targets: [onApp(env)] });
    const { status } = await team.until("texts", "NotUtf8");
    const { message } = status.conditions[0];
    assert.match(message, /spec\.env: key b of ConfigMap \S+ is not UTF-8 text/);
    const [, exclude = "", expression = ""] = /exclude: (\[.*?\]); or .* (\{\{.*\}\})$/.exec(message) ?? [];
    await team.rebind("texts", { targets: [filtered({ exclude: JSON.parse(exclude) })] });
    await untilHeld(team, { a: "é" });
    const a = { path: "spec.env.a", from: { source: "from", key: "a" } };
    await team.rebind("texts", { targets: [onApp(a, { path: "spec.env.b", template: expression })] });
    await untilHeld(team, { a: "é", b: binary });
    await team.until("texts", "Synced");
  });

  it("is copied to a ConfigMap by one field, or by a field for text and a field for bytes, as the message advises", async () => {
    const team = await newAppTeam();
    const bytes = Buffer.from([0xff, 0xfe, 1]);
    await team.secret("from", { a: secretText("copied"), k: bytes, l: bytes });
    const to = `${team.path("v1", "configmaps")}/to`;
    await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "to" } });
    const field = (at: string, filter: object) => ({ path: at, from: { source: "from", ...filter } });
    const both = (...fields: object[]) => ({ apiVersion: "v1", kind: "ConfigMap", name: "to", fields });
    await bind(team, both(field("data", {}), field("binaryData", { include: ["^k$"] })));
    const { message } = (await team.until("all", "NotUtf8")).status.conditions[0];
    assert.match(message, /to copy these keys too, remove the field with path: binaryData: without it/);
    const [, exclude = ""] = /exclude: (\[.*?\]);/.exec(message) ?? [];
    await team.rebind("all", {
      targets: [both(field("data", { exclude: JSON.parse(exclude) }), field("binaryData", { include: ["^k$"] }))],
    });
    await team.until("all", "Synced");
    assert.deepEqual(Object.keys((await team.api.get(to)).binaryData), ["k"]);
    await team.rebind("all", { targets: [onData("ConfigMap", "to")] });
    await eventually(async () => assert.ok((await team.api.get(to)).binaryData.l));
    await team.until("all", "Synced");
    const { data, binaryData } = await team.api.get(to);
    const base64 = bytes.toString("base64");
    assert.deepEqual([Object.keys(data), binaryData], [["a"], { k: base64, l: base64 }]);
  });

  it("is updated while keys are added, changed and removed, and the keys of others stay", async () => {
    const team = await newAppTeam();
    await team.secret("from", { A: "1", B: "1" });
    await bind(team, onApp(env));
    const { status } = await team.until("all", "Synced");
    assert.deepEqual(status.targets[0].paths, ["spec.env"]);
    const object = await team.api.get(path(team));
    const entry: AnyObject = fieldsOf(object, team.manager("all"));
    assert.deepEqual(Object.keys(entry["f:spec"]["f:env"]).sort(), ["f:A", "f:B"]);
    await team.secret("from", { B: "2", C: "2" });
    await dropKey(team, "from", "A");
    await eventually(async () => assert.deepEqual((await specOf(team)).env, { THEIRS: "theirs", B: "2", C: "2" }));
    await team.until("all", "Synced");
  });

  it("reverts changes and removals by others, and ignores the keys that others add", async () => {
    const team = await newAppTeam();
    await team.secret("from", { A: "1", B: "1" });
    await bind(team, onApp(env));
    await team.until("all", "Synced");
    await team.api.merge(path(team), { spec: { env: { A: "changed", B: null } } });
    await eventually(async () => assert.deepEqual((await specOf(team)).env, { THEIRS: "theirs", A: "1", B: "1" }));
    const requests = await team.requestsDuring(() => team.api.merge(path(team), { spec: { env: { MORE: "1" } } }));
    assert.deepEqual(
      requests.filter(({ verb }) => verb === "patch"),
      [],
    );
    assert.deepEqual((await specOf(team)).env, { THEIRS: "theirs", MORE: "1", A: "1", B: "1" });
  });

  it("conflicts only for a key that another manager owns with another value", async () => {
    const team = await newAppTeam();
    await team.secret("from", { A: "1", THEIRS: "ours" });
    await bind(team, onApp(env));
    const { status } = await team.until("all", "Conflict");
    assert.match(status.conditions[0].message, /spec\.env belongs to/);
    assert.deepEqual((await specOf(team)).env, { THEIRS: "theirs" });
    await dropKey(team, "from", "THEIRS");
    await team.until("all", "Synced");
    assert.deepEqual((await specOf(team)).env, { THEIRS: "theirs", A: "1" });
  });

  it("is released key by key, and the keys of others stay", async () => {
    const team = await newAppTeam();
    await team.secret("from", { A: "1", B: "1" });
    await bind(team, onApp(env), { defaults: { onRelease: "Remove" } });
    await team.until("all", "Synced");
    await team.unbind("all");
    assert.deepEqual((await specOf(team)).env, { THEIRS: "theirs" });
    assert.equal(fieldsOf(await team.api.get(path(team)), team.manager("all")), undefined);
  });

  it("that is empty or missing keeps what was written", async () => {
    const team = await newAppTeam();
    await team.secret("from", { A: "1" });
    await bind(team, onApp(env));
    await team.until("all", "Synced");
    await dropKey(team, "from", "A");
    const { status } = await team.until("all", "KeyNotFound");
    assert.match(status.conditions[0].message, /spec\.env: Secret \S+ has no data/);
    await team.api.delete(`${team.path("v1", "secrets")}/from`);
    await team.until("all", "SourceNotFound");
    assert.deepEqual((await specOf(team)).env, { THEIRS: "theirs", A: "1" });
    await team.secret("from", { B: "1" });
    await team.until("all", "Synced");
    assert.deepEqual((await specOf(team)).env, { THEIRS: "theirs", B: "1" });
  });
});

describe("all data of a source, with include and exclude", () => {
  it("has the keys that pass, and removes a key that an edit of the binding excludes", async () => {
    const team = await newAppTeam();
    await team.secret("from", { DB_HOST: "1", DB_PORT: "2", DB_PASSWORD: secretText("password"), OTHER: "3" });
    const chosen = filtered({ include: ["^DB_"], exclude: ["PASSWORD$"] });
    await bind(team, chosen, { defaults: { onRelease: "Remove" } });
    const { status } = await team.until("all", "Synced");
    await untilHeld(team, { DB_HOST: "1", DB_PORT: "2" });
    assert.deepEqual(status.targets[0].paths, ["spec.env"]);
    await team.secret("from", { DB_NAME: "4", MORE: "5" });
    await untilHeld(team, { DB_HOST: "1", DB_PORT: "2", DB_NAME: "4" });
    await team.rebind("all", { targets: [filtered({ include: ["^DB_[HN]", "^MO"] })] });
    await untilHeld(team, { DB_HOST: "1", DB_NAME: "4", MORE: "5" });
    await team.rebind("all", { targets: [filtered({ exclude: ["_", "(?i)^theirs$"] })] });
    await untilHeld(team, { OTHER: "3", MORE: "5" });
    await team.until("all", "Synced");
    await team.unbind("all");
    await untilHeld(team, {});
  });

  it("is not written for a change of a key that does not pass", async () => {
    const team = await newAppTeam();
    await team.secret("from", { A: "1", B: "1" });
    await bind(team, filtered({ exclude: ["^B$"] }));
    await team.until("all", "Synced");
    const requests = await team.requestsDuring(() => team.secret("from", { B: "2" }));
    assert.deepEqual(
      requests.filter(({ verb }) => verb === "patch"),
      [],
    );
    await untilHeld(team, { A: "1" });
  });

  it("that match no key keep what was written, unless onMissing is Remove", async () => {
    const team = await newAppTeam();
    await team.secret("from", { A: "1", B: "1" });
    await bind(team, filtered({ include: ["^A"] }));
    await team.until("all", "Synced");
    await dropKey(team, "from", "A");
    const { status } = await team.until("all", "KeyNotFound");
    assert.match(status.conditions[0].message, /spec\.env: Secret \S+ .*include and exclude/);
    await untilHeld(team, { A: "1" });
    await team.rebind("all", { sources: [{ secret: { name: "from" }, onMissing: "Remove", optional: true }] });
    await untilHeld(team, {});
    await team.until("all", "Synced");
    await team.secret("from", { A2: "2" });
    await untilHeld(team, { A2: "2" });
  });

  it("report an invalid expression, and keep what was written until it is valid", async () => {
    const team = await newAppTeam();
    await team.secret("from", { A: "1", B: "1" });
    const other = { path: "spec.free.a", from: { source: "from", key: "A" } };
    const target = (from: object) => onApp(other, { ...env, from: { source: "from", ...from } });
    await bind(team, target({ include: ["A"] }));
    await team.until("all", "Synced");
    for (const [from, said] of [
      [{ include: ["B", "(A"] }, "spec.env: from.include[1]: "],
      [{ exclude: ["(?=A)"] }, "spec.env: from.exclude[0]: "],
      [{ exclude: ["(a{999}){999}"] }, "spec.env: from.exclude[0]: the regular expression is too large"],
    ] as const) {
      await team.rebind("all", { targets: [target(from)] });
      await eventually(async () => {
        const { status } = await team.until("all", "InvalidBinding");
        assert.ok(status.conditions[0].message.includes(said), status.conditions[0].message);
      });
      await untilHeld(team, { A: "1" });
    }
    await team.rebind("all", { targets: [target({ include: ["B"] })] });
    await untilHeld(team, { B: "1" });
  });

  it("restart workloads for the keys that pass, and for no others", async () => {
    const team = await newAppTeam();
    await team.grant(rolloutRules, { role: "rolls" });
    const shop = new Workloads(team);
    await shop.deploy({ web: {} });
    await team.secret("from", { A: "1", B: "1", C: "1" });
    const rollout = { targets: [{ kind: "Deployment", name: "web" }] };
    await bind(team, filtered({ include: ["^[AB]"], exclude: ["B"] }), { rollout });
    const { status } = await shop.rolledOut("all", 0);
    assert.deepEqual(Object.keys(status.rollout.digests), ['from/*{"include":["^[AB]"],"exclude":["B"]}']);
    await team.secret("from", { B: "2", C: "2", D: "2" });
    await rolloutBarrier(team);
    assert.deepEqual(await shop.restarts(), { web: 0 });
    await team.secret("from", { A: "2" });
    await shop.rolledOut("all", 1);
    await team.secret("from", { A2: "new" });
    await shop.rolledOut("all", 2);
    assert.deepEqual(await shop.restarts(), { web: 2 });
    // Inlay has no baseline for the other keys yet, so they restart nothing.
    await team.rebind("all", { targets: [filtered({ include: ["B"] })] });
    await untilHeld(team, { B: "2" });
    await rolloutBarrier(team);
    assert.deepEqual(await shop.restarts(), { web: 2 });
  });
});
