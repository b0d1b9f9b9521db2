/** Copies of whole Secrets and ConfigMaps: what they take from their source, and how they stay equal to it. */
import assert from "node:assert/strict";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { inlay } from "../controller/cli.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { ALL } from "../controller/made.ts";
import { refuse } from "../controller/refusing.ts";
import { rolloutBarrier } from "../controller/rollout-barrier.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const onData = { apiGroups: [""], resources: ["secrets", "configmaps"], verbs: ALL };
const base64 = (value: string | Uint8Array) => Buffer.from(value).toString("base64");
const newTeam = () => createNamespace({ rules: [onData, ...rolloutRules] });

const paths = { Secret: "secrets", ConfigMap: "configmaps" } as const;
type DataKind = keyof typeof paths;
const pathOf = (team: TestNamespace, kind: DataKind, name = "copy") => `${team.path("v1", paths[kind])}/${name}`;
const read = (team: TestNamespace, kind: DataKind, name?: string): Promise<AnyObject> =>
  team.api.get(pathOf(team, kind, name));
const source = (team: TestNamespace, kind: DataKind, object: object): Promise<AnyObject> =>
  team.api.create(team.path("v1", paths[kind]), { metadata: { name: "from" }, ...object });

const copyOf = (kind: DataKind, create: object | undefined, from: object = { source: "from" }) => ({
  apiVersion: "v1",
  kind,
  name: "copy",
  ...(create && { create: { manifest: {}, ...create } }),
  fields: [{ path: "data", from }],
});
const bind = (team: TestNamespace, kind: DataKind, create: object | undefined, more: object = {}) =>
  team.bind("copy", {
    sources: [kind === "Secret" ? { secret: { name: "from" } } : { configMap: { name: "from" } }],
    targets: [copyOf(kind, create)],
    ...more,
  });
const synced = (team: TestNamespace) => team.until("copy", "Synced");
const noteOf = ({ status }: AnyObject): string => status.targets[0].message ?? "";
const messageOf = ({ status }: AnyObject): string => status.conditions[0].message;

const warningsOf = async (team: TestNamespace): Promise<string[]> =>
  (await team.events("copy")).filter(({ type }) => type === "Warning").map(({ reason }) => reason);

/** Changes something of the source that no copy has, three times, and checks that the copy is not written. */
async function staysUnwritten(team: TestNamespace, kind: DataKind): Promise<void> {
  const before = await read(team, kind);
  for (const turn of ["1", "2", "3"]) {
    await team.api.merge(pathOf(team, kind, "from"), { metadata: { annotations: { "other/turn": turn } } });
    await team.barrier();
  }
  assert.deepEqual((await read(team, kind)).metadata, before.metadata);
}

describe("a copy of a whole Secret", function () {
  this.timeout("2m");

  it("has the type of its source, and labels and annotations that match, but none of other tools", async () => {
    const team = await newTeam();
    await source(team, "Secret", {
      metadata: {
        name: "from",
        labels: { app: "web", "app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "gitops", own: "source" },
        annotations: { "team/owner": "a", other: "x", "kubectl.kubernetes.io/last-applied-configuration": "{}" },
      },
      type: "kubernetes.io/basic-auth",
      data: { username: base64("u"), password: base64(secretText("basic")) },
    });
    const manifest = { metadata: { labels: { own: "manifest" } } };
    await bind(team, "Secret", { manifest, copy: { labels: ["*"], annotations: ["team/*", "kubectl*"] } });
    await synced(team);
    const { type, data, metadata } = await read(team, "Secret");
    const { "inlay.dev/created-by": _, ...labels } = metadata.labels;
    assert.deepEqual([type, data], ["kubernetes.io/basic-auth", (await read(team, "Secret", "from")).data]);
    assert.deepEqual(labels, { app: "web", "app.kubernetes.io/name": "web", own: "manifest" });
    assert.deepEqual(metadata.annotations, { "team/owner": "a" });
    await staysUnwritten(team, "Secret");
    await team.api.merge(pathOf(team, "Secret", "from"), {
      metadata: { labels: { app: null, tier: "1" }, annotations: { "team/owner": "b" } },
    });
    await eventually(async () => {
      const { labels, annotations } = (await read(team, "Secret")).metadata;
      assert.deepEqual([labels.app, labels.tier, annotations], [undefined, "1", { "team/owner": "b" }]);
    });
    await synced(team);
    await team.unbind("copy");
    assert.equal(await team.api.find(pathOf(team, "Secret")), undefined);
  });

  it("keeps its type and gets the values if the type of the source changes, and says so", async () => {
    const team = await newTeam();
    await source(team, "Secret", { type: "example.com/one", data: { a: base64("1") } });
    await bind(team, "Secret", {});
    await synced(team);
    await team.api.merge(pathOf(team, "Secret", "from"), { stringData: { a: "next" } });
    await eventually(async () => assert.equal((await read(team, "Secret")).data.a, base64("next")));
    await team.barrier();
    // Inlay sees the new Secret at once, as if the old one had changed.
    team.controller.signal("SIGSTOP");
    try {
      await team.api.delete(pathOf(team, "Secret", "from"));
      await source(team, "Secret", { type: "example.com/two", data: { a: base64("2") } });
    } finally {
      team.controller.signal("SIGCONT");
    }
    await eventually(async () => {
      const { type, data } = await read(team, "Secret");
      assert.deepEqual([type, data], ["example.com/one", { a: base64("2") }]);
    });
    const keeps = async () => {
      assert.match(
        noteOf(await synced(team)),
        /keeps the type example\.com\/one, .* would now be created with the type example\.com\/two; delete it/,
      );
    };
    await eventually(keeps);
    await staysUnwritten(team, "Secret");
    await team.rebind("copy", { targets: [copyOf("Secret", {}, { source: "from", include: ["a"] })] });
    await eventually(async () => assert.match(noteOf(await synced(team)), /created with the type Opaque; delete it/));
    await team.api.merge(pathOf(team, "Secret", "from"), { stringData: { a: "3" } });
    await eventually(async () => assert.equal((await read(team, "Secret")).data.a, base64("3")));
    await staysUnwritten(team, "Secret");
    assert.deepEqual(await warningsOf(team), []);
  });

  it("is Opaque for a token of a ServiceAccount, and says so, and is written as the manifest says", async () => {
    const team = await newTeam();
    await source(team, "Secret", {
      metadata: { name: "from", annotations: { "kubernetes.io/service-account.name": "inlay" } },
      type: "kubernetes.io/service-account-token",
      data: { token: base64(secretText("token")) },
    });
    await bind(team, "Secret", {});
    assert.match(
      noteOf(await synced(team)),
      /has the type Opaque, because Kubernetes itself .*-account-token; to confirm/,
    );
    await team.rebind("copy", { targets: [copyOf("Secret", { manifest: { type: "Opaque" } })] });
    await eventually(async () => assert.equal(noteOf(await synced(team)), ""));
    assert.equal((await read(team, "Secret")).type, "Opaque");
  });
});

describe("a copy of a whole ConfigMap", () => {
  for (const creates of [true, false])
    it(`has its binaryData, ${creates ? "if the binding creates it" : "beside the keys of others, which stay"}`, async () => {
      const team = await newTeam();
      const bytes = base64(Buffer.from([0xff, 0xfe]));
      await source(team, "ConfigMap", { data: { a: "é" }, binaryData: { b: bytes, text: base64("text") } });
      const theirs = creates ? {} : { theirs: bytes };
      if (!creates)
        await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "copy" }, binaryData: theirs });
      await bind(team, "ConfigMap", creates ? {} : undefined);
      await synced(team);
      const until = (data: object | undefined, binaryData: object | undefined) =>
        eventually(async () => {
          const copy = await read(team, "ConfigMap");
          assert.deepEqual([copy.data, copy.binaryData], [data, binaryData]);
        });
      await until({ a: "é" }, { b: bytes, text: base64("text"), ...theirs });
      await staysUnwritten(team, "ConfigMap");
      const change = (patch: object) => team.api.merge(pathOf(team, "ConfigMap", "from"), patch);
      await change({ data: { c: "c" }, binaryData: null });
      await until({ a: "é", c: "c" }, creates ? undefined : theirs);
      await synced(team);
      await staysUnwritten(team, "ConfigMap");
      await change({ data: null, binaryData: { b: bytes } });
      await until(undefined, { b: bytes, ...theirs });
      await synced(team);
      await staysUnwritten(team, "ConfigMap");
    });
});

describe("an exact copy", function () {
  this.timeout("2m");

  it("loses the keys that others add, until they are added too often; another copy keeps them", async () => {
    const team = await newTeam();
    await source(team, "Secret", { data: { a: base64(secretText("exact")) } });
    await bind(team, "Secret", { exact: true });
    await synced(team);
    const { data } = await read(team, "Secret");
    await team.api.merge(pathOf(team, "Secret"), { stringData: { added: "x", "odd.key": "y" } });
    const untilExact = () => eventually(async () => assert.deepEqual((await read(team, "Secret")).data, data));
    await untilExact();
    await synced(team);
    await staysUnwritten(team, "Secret");
    await eventually(async () => {
      await team.api.merge(pathOf(team, "Secret"), { stringData: { added: "x" } });
      assert.match(messageOf(await team.until("copy", "Contended", 1_000)), /another-user keeps changing/);
    }, 30_000);
    await team.rebind("copy", { targets: [copyOf("Secret", {})] });
    await synced(team);
    await team.api.merge(pathOf(team, "Secret"), { stringData: { added: "x" } });
    await team.barrier();
    assert.ok((await read(team, "Secret")).data.added);
  });

  it("is adopted without the other keys, which are a difference for Equal", async () => {
    const team = await newTeam();
    await source(team, "Secret", { data: { a: base64("1") } });
    await team.secret("copy", { a: "1", theirs: "x" });
    await bind(team, "Secret", { exact: true, adopt: "Equal" });
    assert.match(messageOf(await team.until("copy", "Conflict")), /differs from what .*, at data\.theirs, so/);
    const before = await read(team, "Secret");
    await team.rebind("copy", { targets: [copyOf("Secret", { exact: true, adopt: "Any" })] });
    const { status } = await synced(team);
    const { data, metadata } = await read(team, "Secret");
    assert.deepEqual([data, metadata.uid], [{ a: base64("1") }, before.metadata.uid]);
    assert.equal(status.targets[0].adopted, true);
    await staysUnwritten(team, "Secret");
  });
});

describe("a copy with onImmutable: Recreate", function () {
  this.timeout("3m");

  it("is created again for another type and for immutable data, and nothing restarts for equal values", async () => {
    const team = await newTeam();
    await source(team, "Secret", { data: { a: base64("1"), b: base64("1") } });
    const workloads = new Workloads(team);
    await workloads.deploy({ web: { env: { copy: ["a"] } } });
    const recreated = (manifest: object) => copyOf("Secret", { onImmutable: "Recreate", manifest });
    const rollout = { consumersOfTargets: true, kinds: ["Deployment"] };
    await bind(team, "Secret", { onImmutable: "Recreate", manifest: { type: "example.com/one" } }, { rollout });
    await workloads.rolledOut("copy", 0);
    const one = await read(team, "Secret");
    const untilAnother = async (expected: object, uids: string[]) => {
      await eventually(async () => {
        const { metadata, type, immutable, data } = await read(team, "Secret");
        assert.deepEqual({ type, immutable, data }, { immutable: undefined, ...expected });
        assert.ok(!uids.includes(metadata.uid));
      });
      await synced(team);
      return read(team, "Secret");
    };
    await team.rebind("copy", { targets: [recreated({ type: "example.com/two" })] });
    const two = await untilAnother({ type: "example.com/two", data: one.data }, [one.metadata.uid]);
    await staysUnwritten(team, "Secret");
    await team.rebind("copy", { targets: [recreated({ type: "example.com/two", immutable: true })] });
    await eventually(async () => assert.equal((await read(team, "Secret")).immutable, true));
    assert.equal((await read(team, "Secret")).metadata.uid, two.metadata.uid);
    await rolloutBarrier(team);
    assert.deepEqual(await workloads.restarts(), { web: 0 });
    await team.api.merge(pathOf(team, "Secret", "from"), { stringData: { a: "2" }, data: { b: null } });
    const locked = { type: "example.com/two", immutable: true };
    const three = await untilAnother({ ...locked, data: { a: base64("2") } }, [one.metadata.uid, two.metadata.uid]);
    await workloads.rolledOut("copy", 1);
    assert.deepEqual(await workloads.restarts(), { web: 1 });
    // A key that only goes must go too.
    await team.api.merge(pathOf(team, "Secret", "from"), { stringData: { b: "3" } });
    const four = await untilAnother({ ...locked, data: { a: base64("2"), b: base64("3") } }, [three.metadata.uid]);
    await team.api.merge(pathOf(team, "Secret", "from"), { data: { b: null } });
    await untilAnother({ ...locked, data: { a: base64("2") } }, [four.metadata.uid]);
    const reasons = (await warningsOf(team)).filter((reason) => reason !== "NoPodDisruptionBudget");
    assert.deepEqual(reasons, []);
  });

  it("says that its creation failed after the deletion, and is created as soon as possible", async () => {
    const team = await newTeam();
    await source(team, "Secret", { data: { a: base64("1") } });
    await bind(team, "Secret", { onImmutable: "Recreate", manifest: { type: "example.com/one" } });
    await synced(team);
    const name = `no-${team.namespace}`;
    const writes = { operations: ["CREATE"], apiGroups: [""], resources: ["secrets"] };
    const probe = () => team.api.create(team.path("v1", "secrets"), { metadata: { generateName: "copy" } });
    // A dry run is not refused, so nothing keeps Inlay from the deletion.
    const isFine = "request.dryRun || !object.metadata.name.startsWith('copy')";
    const permit = await refuse(team, name, writes, isFine, probe);
    const target = copyOf("Secret", { onImmutable: "Recreate", manifest: { type: "example.com/two" } });
    const { apiVersion, kind, metadata, spec } = await team.binding("copy");
    const edited = { apiVersion, kind, metadata: { name: metadata.name, namespace: team.namespace }, spec };
    const file = join(await mkdtemp(join(tmpdir(), "inlay-copies-")), "edited.json");
    await writeFile(file, JSON.stringify({ ...edited, spec: { ...spec, targets: [target] } }));
    const { stdout } = await inlay(controlPlane().kubeconfigFile, "diff", "-f", file, "-o", "json");
    const [change] = JSON.parse(stdout).bindings[0].targets;
    assert.deepEqual([change.change, change.fields], ["update", [{ path: "type", change: "changed" }]]);
    await team.rebind("copy", { targets: [target] });
    const message = messageOf(await team.until("copy", "Rejected"));
    assert.match(
      message,
      /copy is deleted, and can't be created again yet: .*ValidatingAdmissionPolicy .*; Inlay retries$/,
    );
    assert.equal(await team.api.find(pathOf(team, "Secret")), undefined);
    await team.controller.stop("SIGKILL");
    await permit();
    await team.controller.start();
    await synced(team);
    assert.equal((await read(team, "Secret")).type, "example.com/two");
  });

  it("is not deleted if the new object would be refused, or if it was adopted", async () => {
    const team = await newTeam();
    await source(team, "Secret", { data: { a: base64("1") } });
    const recreated = (manifest: object) => copyOf("Secret", { onImmutable: "Recreate", adopt: "Equal", manifest });
    await team.api.create(team.path("v1", "secrets"), { metadata: { name: "copy" }, data: { a: base64("1") } });
    await team.bind("copy", { sources: [{ secret: { name: "from" } }], targets: [recreated({})] });
    await synced(team);
    const adopted = await read(team, "Secret");
    await team.rebind("copy", { targets: [recreated({ type: "example.com/two" })] });
    await team.until("copy", "Immutable");
    assert.equal((await read(team, "Secret")).metadata.uid, adopted.metadata.uid);
    await team.api.delete(pathOf(team, "Secret"));
    await synced(team);
    const made = await read(team, "Secret");
    await team.rebind("copy", { targets: [recreated({ type: "kubernetes.io/tls" })] });
    assert.doesNotMatch(messageOf(await team.until("copy", "Rejected")), /is deleted/);
    assert.equal((await read(team, "Secret")).metadata.uid, made.metadata.uid);
  });
});

describe("a copy of several Secrets", () => {
  it("has all their keys, and reports a key that two have unless the later one wins", async () => {
    const team = await newTeam();
    await team.secret("from", { host: "a", user: "u" });
    await team.secret("more", { host: "b", password: secretText("more") });
    const sources = [
      { secret: { name: "from" } },
      { secret: { name: "more" } },
      { secret: { name: "none" }, optional: true },
    ];
    const from = { sources: ["from", "more", "none"] };
    await team.bind("copy", { sources, targets: [copyOf("Secret", {}, from)] });
    const message = messageOf(await team.until("copy", "InvalidValue"));
    assert.match(message, /Secret \S+\/from and Secret \S+\/more both have a key host; set onCollision: LaterWins/);
    assert.equal(await team.api.find(pathOf(team, "Secret")), undefined);
    await team.rebind("copy", { targets: [copyOf("Secret", {}, { ...from, onCollision: "LaterWins" })] });
    await synced(team);
    const { data } = await read(team, "Secret");
    assert.deepEqual(Object.keys(data).sort(), ["host", "password", "user"]);
    assert.equal(data.host, base64("b"));
    await staysUnwritten(team, "Secret");
    await team.secret("none", { host: "c" });
    await eventually(async () => assert.equal((await read(team, "Secret")).data.host, base64("c")));
  });

  it("can't be written by the wrong fields, and the API server says which", async () => {
    const team = await newTeam();
    const bad = (target: object) => team.bind("bad", { sources: [{ secret: { name: "from" } }], targets: [target] });
    const wrong: [object, RegExp][] = [
      [copyOf("Secret", {}, { source: "from", sources: ["from"] }), /exactly one of source and sources/],
      [copyOf("Secret", {}, { sources: ["from"], key: "a" }), /it can't be used with key or fieldPath/],
      [copyOf("Secret", {}, { source: "from", onCollision: "Fail" }), /onCollision has no effect without sources/],
      [copyOf("Secret", { copy: { labels: ["*"] } }, { sources: ["from"] }), /copy needs a field that copies all data/],
      [{ ...copyOf("Secret", { exact: true }), kind: "Service" }, /exact and copy are only for a Secret or ConfigMap/],
    ];
    for (const [target, message] of wrong) await assert.rejects(bad(target), message);
  });
});
