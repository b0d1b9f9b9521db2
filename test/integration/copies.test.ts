/** Copies of a Secret in other namespaces: created, kept equal, restored and deleted, beside the objects of other users. */
import assert from "node:assert/strict";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { ALL } from "../controller/made.ts";
import { loggedUntilNow } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { createNamespace, RESTARTED_WITHIN_MS, type TestNamespace } from "../controller/test-namespace.ts";

const mayCopy = [{ apiGroups: [""], resources: ["secrets"], verbs: ALL }];
const namespaces = [{ apiGroups: [""], resources: ["namespaces"], verbs: ["get", "list", "watch"] }];

/** A copy of the Secret `blog`, or of another one, in the namespaces of the target. */
const copy = (where: object, more: object = {}, name = "blog") => ({
  sources: [{ secret: { name } }],
  targets: [
    {
      apiVersion: "v1",
      kind: "Secret",
      name,
      ...where,
      create: { manifest: { type: "Opaque", metadata: { labels: { copied: "yes" } } } },
      fields: [{ path: "data", from: { source: name } }],
      ...more,
    },
  ],
});

const secretPath = (namespace: string, name = "blog") => `/api/v1/namespaces/${namespace}/secrets/${name}`;

let made = 0;
/** Creates a namespace of the test's own, with labels. */
async function newNamespace(team: TestNamespace, labels: object = {}): Promise<string> {
  const name = `copies-${++made}-${team.namespace}`;
  await team.api.create("/api/v1/namespaces", { metadata: { name, labels } });
  return name;
}

/** Waits until the copy there equals the source. */
async function untilCopied(team: TestNamespace, namespace: string, name = "blog"): Promise<void> {
  await eventually(async () => {
    const [source, found] = await Promise.all(
      [team.namespace, namespace].map((each) => team.api.get(secretPath(each, name))),
    );
    assert.deepEqual(found.data, source.data);
    assert.equal(found.metadata.labels.copied, "yes");
  });
}

async function newCopier(): Promise<TestNamespace> {
  const team = await createNamespace({ rules: mayCopy });
  await team.grantInCluster([...mayCopy, ...namespaces]);
  await team.secret("blog", { user: secretText("user"), binary: new Uint8Array([0, 255, 254, 1]) });
  return team;
}

describe("a copy of a Secret in another namespace", () => {
  it("has all of its data unchanged, and its type from the manifest", async () => {
    const team = await newCopier();
    const namespace = await newNamespace(team);
    await team.bind("blog", copy({ namespace }));
    await team.until("blog", "Synced");
    await untilCopied(team, namespace);
    const { type, metadata } = await team.api.get(secretPath(namespace));
    assert.equal(type, "Opaque");
    assert.equal(metadata.ownerReferences, undefined);
  });

  it("is kept equal: changed, added and removed keys follow, and edits are reverted", async () => {
    const team = await newCopier();
    const namespace = await newNamespace(team);
    await team.bind("blog", copy({ namespace }));
    await untilCopied(team, namespace);
    await team.secret("blog", { user: secretText("rotated"), more: secretText("more") });
    await untilCopied(team, namespace);
    await team.api.merge(secretPath(team.namespace), { data: { binary: null } });
    await untilCopied(team, namespace);
    await team.api.merge(secretPath(namespace), { data: { user: "ZWRpdGVk", more: null } });
    await untilCopied(team, namespace);
    await team.api.delete(secretPath(namespace));
    await untilCopied(team, namespace);
    await team.unbind("blog");
    assert.equal(await team.api.find(secretPath(namespace)), undefined);
    assert.ok(await team.api.find(secretPath(team.namespace)));
  });

  it("never replaces a Secret of another user", async () => {
    const team = await newCopier();
    const namespace = await newNamespace(team);
    const theirs = await team.api.create(`/api/v1/namespaces/${namespace}/secrets`, {
      metadata: { name: "blog", labels: { theirs: "yes" } },
      data: { user: "dGhlaXJz" },
    });
    await team.bind("blog", copy({ namespace }, { onConflict: "Force" }));
    await team.until("blog", "Conflict");
    await team.unbind("blog");
    assert.deepEqual(await team.api.get(secretPath(namespace)), theirs);
  });
});

describe("copies of a Secret in the namespaces that a selector matches", () => {
  /** The namespaces of a test. */
  const selecting = (team: TestNamespace) => ({ namespaceSelector: { matchLabels: { blog: team.namespace } } });
  const labelsOf = (team: TestNamespace) => ({ blog: team.namespace });

  async function copied(count: number): Promise<{ team: TestNamespace; names: string[] }> {
    const team = await newCopier();
    const names: string[] = [];
    for (let n = 0; n < count; n++) names.push(await newNamespace(team, labelsOf(team)));
    await team.bind("blog", copy(selecting(team)));
    const { status } = await team.until("blog", "Synced");
    assert.equal(status.synced, `${count}/${count}`);
    for (const name of names) await untilCopied(team, name);
    return { team, names };
  }

  /** Deletes one of the namespaces, which takes long, while the other tests run. The other namespace stays. */
  let ending: Awaited<ReturnType<typeof copied>>;
  let ends: string;
  let stays: string;
  /** The path of the ConfigMaps, of which one delays the deletion. */
  let held: string;

  before("a namespace is deleted", async () => {
    ending = await copied(2);
    const { team, names } = ending;
    [ends, stays] = names as [string, string];
    held = `/api/v1/namespaces/${ends}/configmaps`;
    await team.api.create(held, { metadata: { name: "held", finalizers: ["example.com/hold"] } });
    await team.api.delete(`/api/v1/namespaces/${ends}`);
  });

  it("exist, are all kept equal, and are restored one by one", async () => {
    const { team, names } = await copied(4);
    const mark = await auditLog().mark();
    await team.api.delete(secretPath(names[1] as string));
    await untilCopied(team, names[1] as string);
    const touched = (await auditLog().controllerWritesSince(mark)).filter(({ resource }) => resource === "secrets");
    assert.deepEqual(
      touched.map(({ verb, namespace }) => [verb, namespace]),
      [["create", names[1]]],
    );
    await team.secret("blog", { user: secretText("rotated") });
    for (const name of names) await untilCopied(team, name);
  });

  it("are created at once with a new namespace or label, and deleted with the label", async () => {
    const { team, names } = await copied(2);
    const [late, labelled] = [await newNamespace(team, labelsOf(team)), await newNamespace(team)];
    await untilCopied(team, late);
    assert.equal(await team.api.find(secretPath(labelled)), undefined);
    await team.api.merge(`/api/v1/namespaces/${labelled}`, { metadata: { labels: labelsOf(team) } });
    await untilCopied(team, labelled);
    await team.api.merge(`/api/v1/namespaces/${names[0]}`, { metadata: { labels: { blog: null } } });
    await team.untilGone(secretPath(names[0] as string));
    await eventually(async () => assert.equal((await team.binding("blog")).status.synced, "3/3"));
    await team.until("blog", "Synced");
    for (const name of [names[1] as string, late, labelled]) assert.ok(await team.api.find(secretPath(name)));
  });

  it("stay with onRelease: Retain in a namespace that does not match any more, without any mark", async () => {
    const { team, names } = await copied(1);
    const [name] = names as [string];
    await team.rebind("blog", copy(selecting(team), { onRelease: "Retain" }));
    await team.until("blog", "Synced");
    await team.api.merge(`/api/v1/namespaces/${name}`, { metadata: { labels: { blog: null } } });
    await eventually(async () => {
      const { metadata } = await team.api.get(secretPath(name));
      assert.deepEqual(metadata.labels, { copied: "yes" });
    });
  });

  it("never replace Secrets of another user, and the other copies are created", async () => {
    const team = await newCopier();
    const [free, taken] = [await newNamespace(team, labelsOf(team)), await newNamespace(team, labelsOf(team))];
    const theirs = await team.api.create(`/api/v1/namespaces/${taken}/secrets`, { metadata: { name: "blog" } });
    await team.bind("blog", copy(selecting(team)));
    const { status } = await team.until("blog", "Conflict");
    assert.equal(status.synced, "1/2");
    await untilCopied(team, free);
    assert.deepEqual(await team.api.get(secretPath(taken)), theirs);
    await team.api.delete(secretPath(taken));
    await untilCopied(team, taken);
    await team.until("blog", "Synced");
  });

  it("do not change the source itself if its namespace matches", async () => {
    const team = await newCopier();
    await team.api.merge(`/api/v1/namespaces/${team.namespace}`, { metadata: { labels: labelsOf(team) } });
    const name = await newNamespace(team, labelsOf(team));
    const source = await team.api.get(secretPath(team.namespace));
    await team.bind("blog", copy(selecting(team)));
    const { status } = await team.until("blog", "Synced");
    assert.match(JSON.stringify(status), /a source of this binding/);
    await untilCopied(team, name);
    assert.deepEqual(await team.api.get(secretPath(team.namespace)), source);
    await team.unbind("blog");
    assert.equal(await team.api.find(secretPath(name)), undefined);
    assert.deepEqual(await team.api.get(secretPath(team.namespace)), source);
  });

  it("are neither created nor counted in a namespace that is being deleted", async () => {
    const { team } = ending;
    await team.untilGone(secretPath(ends), 30_000);
    await team.secret("late", { user: secretText("late") });
    await team.bind("late", copy({ namespaceSelector: { names: [ends, stays] } }, {}, "late"));
    await team.secret("blog", { user: secretText("rotated") });
    for (const name of ["blog", "late"]) {
      await untilCopied(team, stays, name);
      await eventually(async () => {
        const { status } = await team.binding(name);
        const [ready] = status.conditions;
        assert.deepEqual([ready.status, status.synced], ["True", "1/1"]);
        assert.match(ready.message, new RegExp(`^Secret ${stays}/${name} has .* see the notes in status$`));
        const left = status.targets.find(({ objects }: { objects: string[] }) => objects.includes(`${ends}/${name}`));
        assert.equal(left?.reason, "TargetNotFound");
        assert.match(left.message, /is being deleted/);
      });
    }
    await team.secret("alone", { user: secretText("alone") });
    await team.bind("alone", copy({ namespaceSelector: { names: [ends] } }, {}, "alone"));
    const alone = await team.until("alone", "Synced");
    assert.equal(alone.status.synced, "0/0");
    assert.match(alone.status.conditions[0].message, /^namespace \S+ is being deleted/);
    await team.api.merge(`${held}/held`, { metadata: { finalizers: null } });
  });

  it("are not counted in a namespace whose permissions are deleted with it", async () => {
    const team = await createNamespace({ rules: mayCopy });
    await team.secret("blog", { user: secretText("user") });
    const [gone, kept] = [await newNamespace(team), await newNamespace(team)];
    for (const namespace of [gone, kept]) await team.grant(mayCopy, { namespace, role: "guest" });
    await team.bind("blog", copy({ namespaceSelector: { names: [gone, kept] } }));
    await team.until("blog", "Synced");
    const path = `/api/v1/namespaces/${gone}/configmaps`;
    await team.api.create(path, { metadata: { name: "held", finalizers: ["example.com/hold"] } });
    await team.api.delete(`/api/v1/namespaces/${gone}`);
    await team.untilGone(`/apis/rbac.authorization.k8s.io/v1/namespaces/${gone}/roles/guest`);
    await team.untilGone(secretPath(gone));
    await team.secret("blog", { user: secretText("rotated") });
    await untilCopied(team, kept);
    await eventually(async () => {
      const { status } = await team.binding("blog");
      assert.deepEqual([status.conditions[0].status, status.synced], ["True", "1/1"], status.conditions[0].message);
    });
    await team.api.merge(`${path}/held`, { metadata: { finalizers: null } });
  });

  it("are all deleted with their binding, and no other object is", async () => {
    const { team, names } = await copied(3);
    const other = await team.api.create(`/api/v1/namespaces/${names[0]}/secrets`, { metadata: { name: "other" } });
    await team.unbind("blog");
    for (const name of names) assert.equal(await team.api.find(secretPath(name)), undefined);
    assert.deepEqual(await team.api.get(secretPath(names[0] as string, "other")), other);
    assert.ok(await team.api.find(secretPath(team.namespace)));
  });

  it("need no write after a restart", async () => {
    const { team, names } = await copied(3);
    const beside = await newNamespace(team);
    await team.secret("beside", { user: secretText("user") });
    await team.bind("beside", copy({ namespace: beside }, {}, "beside"));
    await team.until("beside", "Synced");
    await team.controller.stop();
    const mark = await auditLog().mark();
    await team.controller.start();
    await eventually(async () => {
      const reads = (await auditLog().since(mark)).filter(
        ({ verb, resource }) => verb === "get" && resource === "secrets",
      );
      for (const name of names) assert.ok(reads.some(({ namespace }) => namespace === name));
    }, RESTARTED_WITHIN_MS);
    // A later change, which the same watches deliver.
    await team.secret("beside", { user: secretText("rotated") });
    await untilCopied(team, beside, "beside");
    await team.controller.idle();
    await loggedUntilNow(team);
    const writes = await auditLog().controllerWritesSince(mark);
    assert.deepEqual(
      writes.filter(
        ({ namespace, name }) => [team.namespace, ...names].includes(namespace) && !name.startsWith("beside"),
      ),
      [],
    );
  });

  it("do not block the deletion of a namespace, and are created when it returns", async () => {
    const { team } = ending;
    await team.untilGone(`/api/v1/namespaces/${ends}`, 30_000);
    await eventually(async () => assert.equal((await team.binding("blog")).status.synced, "1/1"));
    await team.until("blog", "Synced");
    await team.api.create("/api/v1/namespaces", { metadata: { name: ends, labels: labelsOf(team) } });
    for (const name of ["blog", "late", "alone"]) await eventually(() => team.api.get(secretPath(ends, name)), 45_000);
  });
});
