/**
 * Objects that a binding adopts with `create.adopt`: the conditions, one update for each object, and the parts that stay
 * unchanged.
 */
import assert from "node:assert/strict";
import { FINALIZER } from "../../src/api/binding.ts";
import { type AnyObject, unlessGone } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { ALL, configMap, LABEL } from "../controller/made.ts";
import { commandsIn, paste } from "../controller/paste.ts";
import { createNamespace, RESTARTED_WITHIN_MS, type TestNamespace } from "../controller/test-namespace.ts";

const onSecrets = (verbs: string[]) => ({ apiGroups: [""], resources: ["secrets"], verbs });
const onConfigMaps = { apiGroups: [""], resources: ["configmaps"], verbs: ALL };
const onNamespaces = { apiGroups: [""], resources: ["namespaces"], verbs: ["get", "list", "watch"] };
const onDeployments = { apiGroups: ["apps"], resources: ["deployments"], verbs: ALL };

const encoded = (value: string) => Buffer.from(value).toString("base64");
const messageOf = ({ status }: AnyObject): string => status.conditions[0].message;
const noteOf = ({ status }: AnyObject): string => status.targets[0].message ?? "";

const newAdopter = () => createNamespace({ rules: [onSecrets(ALL), onConfigMaps, onDeployments] });

/** The target ConfigMap `place` with some data and `create.adopt`. */
const place = (adopt: string | undefined, data: object, more: object = {}, manifest: object = {}) => ({
  sources: [{ configMap: { name: "settings" } }],
  targets: [configMap({ create: { ...(adopt && { adopt }), manifest: { data, ...manifest } }, ...more })],
});
const placePath = (team: TestNamespace) => `${team.path("v1", "configmaps")}/place`;

/** Creates the ConfigMap `place` as another user. Returns it. */
const makePlace = (team: TestNamespace, data: object, { metadata = {}, ...more }: AnyObject = {}): Promise<AnyObject> =>
  team.api.create(team.path("v1", "configmaps"), { metadata: { name: "place", ...metadata }, data, ...more });

/** A target that copies the Secret `blog` into one namespace, or into all with the label of the team. */
const copies = (team: TestNamespace, adopt: string, more: object = {}) => ({
  sources: [{ secret: { name: "blog" } }],
  targets: [
    {
      apiVersion: "v1",
      kind: "Secret",
      name: "blog",
      namespaceSelector: { matchLabels: { blog: team.namespace } },
      create: { adopt, manifest: { metadata: { labels: { copied: "yes" } } } },
      fields: [{ path: "data", from: { source: "blog" } }],
      ...more,
    },
  ],
});
const secretPath = (namespace: string) => `/api/v1/namespaces/${namespace}/secrets/blog`;

let made = 0;

/** A team with the Secret `blog`, and namespaces into which it may copy it. */
async function newCopier(
  count: number,
): Promise<{ team: TestNamespace; names: string[]; data: Record<string, string> }> {
  const team = await newAdopter();
  await team.grantInCluster([onSecrets(ALL), onNamespaces]);
  const texts = { user: secretText("user"), password: secretText("password") };
  await team.secret("blog", texts);
  const names = Array.from({ length: count }, () => `adopt-${++made}-${team.namespace}`);
  for (const name of names)
    await team.api.create("/api/v1/namespaces", { metadata: { name, labels: { blog: team.namespace } } });
  const data = Object.fromEntries(Object.entries(texts).map(([key, value]) => [key, encoded(value)]));
  return { team, names, data };
}

/** Copies the Secret as another user. Returns the copy. */
const copyByHand = (team: TestNamespace, namespace: string, data: object): Promise<AnyObject> =>
  team.api.create(`/api/v1/namespaces/${namespace}/secrets`, {
    metadata: { name: "blog", labels: { copied: "yes" } },
    data,
  });

/** Records the events of the Secrets `blog` in these namespaces, until you call the returned function. */
async function watchCopies(team: TestNamespace, names: readonly string[]): Promise<() => string[]> {
  const seen: string[] = [];
  const end = new AbortController();
  const started = Promise.withResolvers<void>();
  const watch = async () => {
    for await (const { type, object } of team.api.watch("/api/v1/secrets", 120, end.signal)) {
      const { name, namespace } = object.metadata;
      if (name === "blog" && names.includes(namespace)) seen.push(`${type} ${namespace}`);
      if (seen.length === names.length) started.resolve();
    }
  };
  void watch().catch(() => started.resolve());
  await started.promise;
  seen.splice(0);
  return () => {
    end.abort();
    return seen;
  };
}

/** Creates the binding, waits for the Conflict, and checks that the object does not change. Returns the message. */
async function conflictOver(team: TestNamespace, path: string, name: string, spec: object): Promise<string> {
  const before = await team.api.get(path);
  await team.bind(name, spec);
  const message = messageOf(await team.until(name, "Conflict"));
  assert.deepEqual(await team.api.get(path), before);
  return message;
}

describe("copies that a user created by hand", function () {
  this.timeout("2m");

  it("are adopted if they are equal, each by one update, without a deletion or restart; a copy that differs does not change", async () => {
    const { team, names, data } = await newCopier(21);
    const [differs, ...equal] = names as [string, ...string[]];
    const before = new Map<string, AnyObject>();
    for (const name of equal) before.set(name, await copyByHand(team, name, data));
    const other = await copyByHand(team, differs, { ...data, password: encoded("another") });
    const labels = { app: "blog" };
    const deployments = team.path("apps/v1", "deployments");
    const container = { name: "blog", image: "blog:1", envFrom: [{ secretRef: { name: "blog" } }] };
    const template = { metadata: { labels }, spec: { containers: [container] } };
    await team.api.create(deployments, {
      metadata: { name: "blog" },
      spec: { selector: { matchLabels: labels }, template },
    });
    const seen = await watchCopies(team, names);
    const { metadata } = await team.bind("blog", { ...copies(team, "Equal"), rollout: { consumersOf: ["blog"] } });
    const { status } = await team.until("blog", "Conflict");
    assert.equal(status.synced, "20/21");
    assert.match(messageOf({ status }), /Secret adopt-\S+ .*data\.password/);
    assert.match(messageOf({ status }), /create\.adopt: Any/);
    assert.deepEqual(await team.api.get(secretPath(differs)), other);
    for (const name of equal) {
      const { metadata: now, data: kept } = await team.api.get(secretPath(name));
      assert.equal(now.uid, before.get(name).metadata.uid);
      assert.equal(now.labels[LABEL], metadata.uid);
      assert.equal(now.ownerReferences, undefined);
      assert.deepEqual(kept, data);
    }
    await team.controller.idle();
    assert.deepEqual(seen().sort(), equal.map((name) => `MODIFIED ${name}`).sort());
    const { metadata: consumer, spec } = await team.api.get(`${deployments}/blog`);
    assert.equal(consumer.generation, 1);
    assert.deepEqual(spec.template.metadata.annotations, undefined);
    const events = await team.events("blog");
    assert.ok(events.some(({ reason, note }) => reason === "Adopted" && /adopted Secret adopt-/.test(note)));
    // The copy that differs is adopted as soon as it is equal.
    await team.api.merge(secretPath(differs), { data });
    await eventually(async () =>
      assert.equal((await team.api.get(secretPath(differs))).metadata.labels[LABEL], metadata.uid),
    );
  });

  it("are kept in sync after the adoption: they follow the source, lose keys that it drops, and are deleted with the binding", async () => {
    const { team, names, data } = await newCopier(2);
    for (const name of names) await copyByHand(team, name, data);
    await team.bind("blog", copies(team, "Equal"));
    await team.until("blog", "Synced");
    const rotated = secretText("rotated");
    await team.secret("blog", { password: rotated });
    await team.api.merge(`${team.path("v1", "secrets")}/blog`, { data: { user: null } });
    for (const name of names)
      await eventually(async () =>
        assert.deepEqual((await team.api.get(secretPath(name))).data, { password: encoded(rotated) }),
      );
    await team.unbind("blog");
    for (const name of names) assert.equal(await team.api.find(secretPath(name)), undefined);
  });

  it("stay with onRelease: Retain, without any mark of Inlay", async () => {
    const { team, names, data } = await newCopier(1);
    const [name] = names as [string];
    await copyByHand(team, name, data);
    await team.bind("blog", copies(team, "Equal", { onRelease: "Retain" }));
    await team.until("blog", "Synced");
    await team.unbind("blog");
    const { metadata, data: kept } = await team.api.get(secretPath(name));
    assert.deepEqual([metadata.labels, kept], [{ copied: "yes" }, data]);
  });

  it("keep keys that only the old tool wrote, and the binding names these keys while they exist", async () => {
    const { team, names, data } = await newCopier(1);
    const [name] = names as [string];
    await copyByHand(team, name, { ...data, "old.key": encoded("old") });
    await team.bind("blog", copies(team, "Equal"));
    const { status } = await team.until("blog", "Synced");
    const says = /data\["old\.key"\]/;
    assert.match(noteOf({ status }), says);
    await team.secret("blog", { password: secretText("rotated") });
    await eventually(async () =>
      assert.notEqual((await team.api.get(secretPath(name))).data.password, data["password"]),
    );
    assert.match(noteOf(await team.until("blog", "Synced")), says);
    assert.equal((await team.api.get(secretPath(name))).data["old.key"], encoded("old"));
    await team.api.merge(secretPath(name), { data: { "old.key": null } });
    await eventually(async () => assert.doesNotMatch(noteOf(await team.binding("blog")), /stay/));
  });

  it("are adopted by a binding that was restored from a backup, with another uid and without status", async () => {
    const { team, names, data } = await newCopier(2);
    // One of them is in the binding's own namespace with another name, and has the binding as owner.
    const { targets, ...rest } = copies(team, "Equal");
    const [target] = targets as [AnyObject];
    const { namespaceSelector: _, ...own } = { ...target, name: "own" };
    const spec = { ...rest, targets: [target, own] };
    const { metadata: former } = await team.bind("blog", spec);
    await team.until("blog", "Synced");
    const paths = [...names.map(secretPath), `${team.path("v1", "secrets")}/own`];
    const before = await Promise.all(paths.map((path) => team.api.get(path)));
    await team.controller.stop();
    await team.api.delete(`${team.bindingPath("blog")}?propagationPolicy=Orphan`);
    // The garbage collector orphans the objects that the binding owns, and then removes its own finalizer.
    await eventually(async () => {
      const { finalizers = [] } = (await team.api.find(team.bindingPath("blog")))?.metadata ?? {};
      const others = finalizers.filter((each: string) => each !== FINALIZER);
      if (others.length < finalizers.length)
        await team.api.merge(team.bindingPath("blog"), { metadata: { finalizers: others } }).catch(unlessGone);
      assert.equal(await team.api.find(team.bindingPath("blog")), undefined);
    });
    for (const path of paths) assert.equal((await team.api.get(path)).metadata.labels[LABEL], former.uid);
    const seen = await watchCopies(team, names);
    const { metadata } = await team.bind("blog", spec);
    await team.controller.start();
    await team.until("blog", "Synced", RESTARTED_WITHIN_MS);
    await team.controller.idle();
    assert.deepEqual(seen().sort(), names.map((name) => `MODIFIED ${name}`).sort());
    for (const [at, path] of paths.entries()) {
      const now = await team.api.get(path);
      assert.equal(now.metadata.uid, before[at].metadata.uid);
      assert.equal(now.metadata.labels[LABEL], metadata.uid);
      assert.deepEqual(now.data, data);
    }
    const owners = (await team.api.get(paths.at(-1) as string)).metadata.ownerReferences;
    assert.deepEqual(
      owners.map(({ uid }: AnyObject) => uid),
      [metadata.uid],
    );
    await team.unbind("blog");
    for (const path of paths) assert.equal(await team.api.find(path), undefined);
  });
});

describe("an adopted object", () => {
  it("is overwritten with Any where it differs, in one update, and keeps the fields that the binding does not write", async () => {
    const team = await newAdopter();
    const before = await makePlace(team, { host: "theirs", old: "kept" }, { metadata: { annotations: { a: "b" } } });
    const { metadata } = await team.bind("place", place("Any", { host: "ours", port: "1" }));
    const { status } = await team.until("place", "Synced");
    assert.match(noteOf({ status }), /data\.old\b/);
    const now = await team.api.get(placePath(team));
    assert.deepEqual(now.data, { host: "ours", port: "1", old: "kept" });
    assert.equal(now.metadata.uid, before.metadata.uid);
    assert.deepEqual(now.metadata.annotations, { a: "b" });
    assert.deepEqual(now.metadata.labels, { [LABEL]: metadata.uid });
  });

  it("is treated as a created one: changes are reverted, keys that the manifest drops are removed, and it is deleted with the binding", async () => {
    const team = await newAdopter();
    await makePlace(team, { host: "one", port: "1" });
    await team.bind("place", place("Equal", { host: "one", port: "1" }));
    await team.until("place", "Synced");
    await team.api.merge(placePath(team), { data: { host: "edited" } });
    await eventually(async () => assert.equal((await team.api.get(placePath(team))).data.host, "one"));
    await team.rebind("place", place("Equal", { host: "two" }));
    await eventually(async () => assert.deepEqual((await team.api.get(placePath(team))).data, { host: "two" }));
    await team.unbind("place");
    assert.equal(await team.api.find(placePath(team)), undefined);
  });

  it("in the binding's own namespace has the binding as owner, and the garbage collector does not delete it", async () => {
    const team = await newAdopter();
    await makePlace(team, { host: "one" });
    const { metadata } = await team.bind("place", place("Equal", { host: "one" }));
    await team.until("place", "Synced");
    // The garbage collector deletes an object at once if its only owner does not exist. After that, it has processed all
    // earlier events.
    const gone = { apiVersion: "v1", kind: "ConfigMap", name: "gone", uid: "00000000-0000-4000-8000-000000000000" };
    const configMaps = team.path("v1", "configmaps");
    await team.api.create(configMaps, { metadata: { name: "orphan", ownerReferences: [gone] } });
    await team.untilGone(`${configMaps}/orphan`);
    const { ownerReferences } = (await team.api.get(placePath(team))).metadata;
    const owner = { apiVersion: "inlay.dev/v1alpha1", kind: "SecretBinding", name: "place", uid: metadata.uid };
    assert.deepEqual(ownerReferences, [{ ...owner, controller: false, blockOwnerDeletion: false }]);
  });

  it("counts as equal by the defaults of the API server, and by quantities in any notation", async () => {
    const team = await newAdopter();
    const labels = { app: "web" };
    const deployment = (limits: object) => ({
      spec: {
        replicas: 0,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [{ name: "web", image: "web:1", resources: { limits } }] },
        },
      },
    });
    const path = team.path("apps/v1", "deployments");
    await team.api.create(path, { metadata: { name: "web" }, ...deployment({ cpu: "1", memory: "512Mi" }) });
    const manifest = deployment({ cpu: "1000m", memory: "0.5Gi" });
    const target = { apiVersion: "apps/v1", kind: "Deployment", name: "web", create: { adopt: "Equal", manifest } };
    await team.bind("web", { sources: [{ configMap: { name: "settings" } }], targets: [target] });
    await team.until("web", "Synced");
    assert.equal((await team.api.get(`${path}/web`)).metadata.generation, 1);
  });

  it("is adopted once with mode: Once, and not changed afterwards", async () => {
    const team = await newAdopter();
    await makePlace(team, { host: "one" });
    await team.bind("place", place("Any", { host: "two" }, { mode: "Once" }));
    assert.match(noteOf(await team.until("place", "Synced")), /adopted once/);
    await team.api.merge(placePath(team), { data: { host: "edited" } });
    await team.controller.idle();
    await team.rebind("place", place("Any", { host: "three" }, { mode: "Once" }));
    await team.until("place", "Synced");
    assert.equal((await team.api.get(placePath(team))).data.host, "edited");
    await team.unbind("place");
    assert.equal(await team.api.find(placePath(team)), undefined);
  });

  it("waits for its values like a created one", async () => {
    const team = await newAdopter();
    await makePlace(team, { host: "one" });
    const field = { path: "data.port", from: { source: "settings", key: "port" } };
    const before = await team.api.get(placePath(team));
    const { targets: _, ...rest } = place("Any", {});
    const spec = { ...rest, targets: [configMap({ create: { adopt: "Any", manifest: {} }, fields: [field] })] };
    await team.bind("place", spec);
    const { status } = await team.until("place", "SourceNotFound");
    assert.equal(status.targets[0].created, undefined);
    assert.deepEqual(await team.api.get(placePath(team)), before);
    await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "settings" }, data: { port: "5432" } });
    await team.until("place", "Synced");
    assert.deepEqual((await team.api.get(placePath(team))).data, { host: "one", port: "5432" });
  });
});

describe("an object is not adopted", () => {
  it("unless the target permits it, and the message names the field", async () => {
    const team = await newAdopter();
    await makePlace(team, { host: "one" });
    const message = await conflictOver(team, placePath(team), "place", place(undefined, { host: "one" }));
    assert.match(message, /set create\.adopt to Equal or Any/);
    await team.rebind("place", place("Equal", { host: "one" }));
    await team.until("place", "Synced");
  });

  it("if it has a controller, which the message names", async () => {
    const team = await newAdopter();
    const configMaps = team.path("v1", "configmaps");
    const { metadata } = await team.api.create(configMaps, { metadata: { name: "boss" } });
    const owner = { apiVersion: "v1", kind: "ConfigMap", name: "boss", uid: metadata.uid, controller: true };
    await makePlace(team, { host: "one" }, { metadata: { ownerReferences: [owner] } });
    const message = await conflictOver(team, placePath(team), "place", place("Any", { host: "two" }));
    assert.match(message, /ConfigMap boss/);
  });

  it("if another binding created it and exists; it is adopted after that", async () => {
    const team = await newAdopter();
    await team.bind("first", place(undefined, { host: "one" }, { onRelease: "Retain" }));
    await team.until("first", "Synced");
    const message = await conflictOver(team, placePath(team), "second", place("Any", { host: "two" }));
    assert.match(message, new RegExp(`SecretBinding ${team.namespace}/first`));
    await team.unbind("first");
    const { metadata } = await team.until("second", "Synced");
    const now = await team.api.get(placePath(team));
    assert.deepEqual([now.metadata.labels[LABEL], now.data], [metadata.uid, { host: "two" }]);
  });

  it("if another binding writes a field of it", async () => {
    const team = await newAdopter();
    await makePlace(team, { port: "1" });
    const field = { path: "data.host", template: "one" };
    const ordinary = {
      sources: [{ configMap: { name: "settings" } }],
      targets: [configMap({ create: undefined, fields: [field] })],
    };
    await team.bind("first", ordinary);
    await team.until("first", "Synced");
    const message = await conflictOver(team, placePath(team), "second", place("Any", { host: "two" }));
    assert.match(message, new RegExp(`SecretBinding ${team.namespace}/first`));
  });

  it("if it is a Secret of another type", async () => {
    const team = await newAdopter();
    const secrets = team.path("v1", "secrets");
    await team.api.create(secrets, {
      metadata: { name: "auth" },
      type: "kubernetes.io/basic-auth",
      data: { username: "YQ==" },
    });
    const target = {
      apiVersion: "v1",
      kind: "Secret",
      name: "auth",
      create: { adopt: "Any", manifest: { data: { a: "Yg==" } } },
    };
    const spec = { sources: [{ configMap: { name: "settings" } }], targets: [target] };
    assert.match(await conflictOver(team, `${secrets}/auth`, "auth", spec), /type in create\.manifest/);
  });

  it("if it is immutable with other data, and it is never deleted for that; with equal data it is adopted", async () => {
    const team = await newAdopter();
    await makePlace(team, { host: "one" }, { immutable: true });
    const message = await conflictOver(team, placePath(team), "place", place("Any", { host: "two" }));
    assert.match(message, /data\.host/);
    await team.rebind("place", place("Any", { host: "one" }));
    await team.until("place", "Synced");
  });

  it("while it is being deleted; it is created afterwards", async () => {
    const team = await newAdopter();
    const before = await makePlace(team, { host: "one" }, { metadata: { finalizers: ["example.com/hold"] } });
    await team.api.delete(placePath(team));
    await team.bind("place", place("Equal", { host: "one" }));
    assert.match(messageOf(await team.until("place", "TargetNotFound")), /being deleted/);
    await team.api.merge(placePath(team), { metadata: { finalizers: null } });
    const { metadata } = await team.until("place", "Synced");
    const now = await team.api.get(placePath(team));
    assert.notEqual(now.metadata.uid, before.metadata.uid);
    assert.equal(now.metadata.labels[LABEL], metadata.uid);
  });

  it("by an account that may not patch it, whatever adopt says: it does not change, and the message has the command", async () => {
    const team = await createNamespace({ rules: [onSecrets(["get", "list", "watch", "create", "delete"])] });
    await team.secret("blog", { user: secretText("user") });
    const secrets = team.path("v1", "secrets");
    const theirs = await team.api.create(secrets, { metadata: { name: "theirs" }, data: { user: encoded("theirs") } });
    const { targets, ...rest } = copies(team, "Any");
    const [{ namespaceSelector: _, ...target }] = targets as [AnyObject];
    await team.bind("blog", { ...rest, targets: [{ ...target, name: "theirs" }] });
    const binding = await team.until("blog", "Forbidden");
    assert.match(messageOf(binding), /may not patch secrets\/theirs/);
    assert.deepEqual(await team.api.get(`${secrets}/theirs`), theirs);
    assert.equal(binding.status.targets[0].created, undefined);
    await paste(commandsIn(messageOf(binding)));
    await team.until("blog", "Synced", 30_000);
    assert.equal((await team.api.get(`${secrets}/theirs`)).metadata.uid, theirs.metadata.uid);
  });
});

describe("a controller that is killed while it adopts objects", function () {
  this.timeout("2m");

  it("decides again about each object: it owns adopted objects, and does not own objects that it only announced", async () => {
    const { team, names, data } = await newCopier(24);
    const [differs] = names as [string];
    for (const name of names) await copyByHand(team, name, name === differs ? {} : data);
    const announced = (async () => {
      const path = team.path("inlay.dev/v1alpha1", "secretbindings");
      for await (const { object } of team.api.watch(path, 60))
        if (object.status?.targets?.some(({ created }: AnyObject) => created)) return;
    })();
    const { metadata } = await team.bind("blog", copies(team, "Equal"));
    await announced;
    await team.controller.stop("SIGKILL");
    const isOurs = async (name: string) =>
      (await team.api.get(secretPath(name))).metadata.labels[LABEL] === metadata.uid;
    // Some of the others are changed while the controller is down, so they are not equal any more.
    const changed = [differs];
    for (const [index, name] of names.entries()) {
      if (name === differs || index % 2 === 0 || (await isOurs(name))) continue;
      changed.push(name);
      await team.api.merge(secretPath(name), { data: { user: encoded("changed") } });
    }
    const before = new Map<string, AnyObject>();
    for (const name of changed) before.set(name, await team.api.get(secretPath(name)));
    await team.controller.start();
    const { status } = await team.until("blog", "Conflict", RESTARTED_WITHIN_MS);
    assert.equal(status.synced, `${names.length - changed.length}/${names.length}`);
    for (const name of names) assert.equal(await isOurs(name), !changed.includes(name), name);
    await team.unbind("blog");
    for (const name of names) assert.deepEqual(await team.api.find(secretPath(name)), before.get(name));
  });

  it("recognizes announced objects by the label: it owns objects with the label, and decides again about the others", async () => {
    const { team, names, data } = await newCopier(3);
    const [written, equal, differs] = names as [string, string, string];
    for (const name of [written, equal]) await copyByHand(team, name, data);
    const other = await copyByHand(team, differs, {});
    await team.controller.stop();
    const { metadata } = await team.bind("blog", copies(team, "Equal"));
    const state = { apiVersion: "v1", kind: "Secret", reason: "Pending", created: true, onRelease: "Remove" };
    const targets = [{ ...state, objects: names.map((name) => `${name}/blog`) }];
    await team.api.merge(team.bindingPath("blog"), { metadata: { finalizers: ["inlay.dev/release"] } });
    await team.api.merge(`${team.bindingPath("blog")}/status`, { status: { observedGeneration: 1, targets } });
    // This copy was written, and then changed by another user. The binding owns it and reverts the change.
    const metadataOfOurs = { labels: { [LABEL]: metadata.uid } };
    await team.api.merge(secretPath(written), { metadata: metadataOfOurs, data: { user: encoded("changed") } });
    await team.controller.start();
    await team.until("blog", "Conflict", RESTARTED_WITHIN_MS);
    for (const name of [written, equal]) {
      const now = await team.api.get(secretPath(name));
      assert.deepEqual([now.metadata.labels[LABEL], now.data], [metadata.uid, data]);
    }
    assert.deepEqual(await team.api.get(secretPath(differs)), other);
    await team.unbind("blog");
    assert.deepEqual(await team.api.get(secretPath(differs)), other);
    for (const name of [written, equal]) assert.equal(await team.api.find(secretPath(name)), undefined);
  });
});
