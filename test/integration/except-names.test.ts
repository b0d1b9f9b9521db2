/** exceptNames excludes the namespaces, objects, grants and workloads that its globs match, and no others. */
import assert from "node:assert/strict";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { ALL } from "../controller/made.ts";
import { newNeighbours } from "../controller/neighbours.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const mayCopy = [{ apiGroups: [""], resources: ["secrets"], verbs: ALL }];
const mayWriteMaps = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch", "patch"] }];
const namespaces = [{ apiGroups: [""], resources: ["namespaces"], verbs: ["get", "list", "watch"] }];

/** A binding that copies the Secret `blog` into namespaces. */
const copy = (namespaceSelector: object) => ({
  sources: [{ secret: { name: "blog" } }],
  targets: [
    {
      apiVersion: "v1",
      kind: "Secret",
      name: "blog",
      namespaceSelector,
      create: { manifest: { type: "Opaque" } },
      fields: [{ path: "data", from: { source: "blog" } }],
    },
  ],
});

async function newCopier(): Promise<TestNamespace> {
  const team = await createNamespace({ rules: mayCopy });
  await team.grantInCluster([...mayCopy, ...namespaces]);
  await team.secret("blog", { token: secretText("token") });
  return team;
}

/** Creates a namespace with the label that the tests select by. */
const newNamespace = (team: TestNamespace, name: string) =>
  team.api.create("/api/v1/namespaces", { metadata: { name, labels: { tenant: team.namespace } } });

/** The namespaces that have a copy. */
async function copiedTo(team: TestNamespace, names: readonly string[]): Promise<string[]> {
  const found = await Promise.all(names.map((name) => team.api.find(`/api/v1/namespaces/${name}/secrets/blog`)));
  return names.filter((_, index) => found[index] !== undefined);
}

const untilCopiedTo = (team: TestNamespace, names: readonly string[], expected: readonly string[]) =>
  eventually(async () => assert.deepEqual(await copiedTo(team, names), expected));

describe("exceptNames", () => {
  it("excludes exactly the namespaces that its globs match, whatever names tenants choose", async () => {
    const team = await newCopier();
    const own = team.namespace;
    const longest = (name: string) => name.padEnd(63, "a");
    const excepted = [`${own}-kube-a`, longest(`${own}-kube-`), `${own}-kube-kube-a`, `${own}-x`];
    const others = [
      `${own}-kube`,
      `${own}-kubex`,
      longest(`${own}-kubex`),
      `x${own}-kube-a`,
      `${own}-kub-e-a`,
      `${own}-xy`,
    ];
    const exceptNames = [`${own}-kube-*`, `${own}-?`, "*KUBEX", `${own}-KUB*`, own];
    await team.bind("blog", copy({ matchLabels: { tenant: own }, exceptNames }));
    for (const name of [...excepted, ...others]) await newNamespace(team, name);
    await untilCopiedTo(team, others, others);

    // A tenant can't rename a namespace.
    const path = `/api/v1/namespaces/${own}-kube-a`;
    await assert.rejects(team.api.merge(path, { metadata: { name: `${own}-kubex` } }), /does not match|immutable/);
    const label = "kubernetes.io/metadata.name";
    const { metadata } = await team.api.merge(path, { metadata: { labels: { [label]: `${own}-kubex`, more: "yes" } } });
    assert.deepEqual([metadata.labels[label], metadata.labels.more], [`${own}-kube-a`, "yes"]);
    await newNamespace(team, `${own}-later`);
    await untilCopiedTo(team, [`${own}-later`], [`${own}-later`]);
    await team.until("blog", "Synced");
    assert.deepEqual(await copiedTo(team, excepted), []);
  });

  it("deletes the copy of a namespace when it begins to match, and creates it when it does not match any more", async () => {
    const team = await newCopier();
    const names = ["a", "b", "c"].map((name) => `${team.namespace}-${name}`);
    const [a, b, c] = names as [string, string, string];
    for (const name of names) await newNamespace(team, name);
    const matchLabels = { tenant: team.namespace };
    await team.bind("blog", copy({ matchLabels, exceptNames: [a] }));
    await untilCopiedTo(team, names, [b, c]);
    await team.rebind("blog", copy({ matchLabels, exceptNames: [b] }));
    await untilCopiedTo(team, names, [a, c]);
    await team.rebind("blog", copy({ names, exceptNames: ["*-c"] }));
    await untilCopiedTo(team, names, [a, b]);
    assert.equal((await team.until("blog", "Synced")).status.synced, "2/2");
  });

  it("alone requires permission to read namespaces, and beside names without wildcards requires none", async () => {
    const team = await createNamespace({ rules: mayCopy });
    await team.secret("blog", { token: secretText("token") });
    const [one, two] = [`${team.namespace}-one`, `${team.namespace}-two`];
    for (const name of [one, two]) await newNamespace(team, name);
    await team.grant(mayCopy, { namespace: one, role: "copies" });
    await team.bind("blog", copy({ names: [one, two], exceptNames: ["*-two"] }));
    assert.equal((await team.until("blog", "Synced")).status.synced, "1/1");
    await team.rebind("blog", copy({ exceptNames: ["*-two"] }));
    const { status } = await team.until("blog", "Forbidden");
    assert.match(status.conditions[0].message, /may not list namespaces/);
    assert.deepEqual(await copiedTo(team, [one, two]), [one]);
  });

  it("of a selector excludes objects, alone and beside names and labels", async () => {
    const team = await createNamespace({ rules: mayWriteMaps });
    const maps = team.path("v1", "configmaps");
    const add = (name: string) => team.api.create(maps, { metadata: { name, labels: { tier: name.slice(0, 1) } } });
    await team.api.create(maps, { metadata: { name: "from" }, data: { host: "example.com" } });
    for (const name of ["a-1", "a-old", "b-1"]) await add(name);
    const spec = (selector: object) => ({
      sources: [{ configMap: { name: "from" } }],
      targets: [
        {
          apiVersion: "v1",
          kind: "ConfigMap",
          selector,
          onRelease: "Remove",
          fields: [{ path: "data.copied", from: { source: "from", key: "host" } }],
        },
      ],
    });
    const untilHeldBy = (...names: string[]) =>
      eventually(async () => {
        const { items } = await team.api.get(maps);
        const held = items.filter(({ data }: { data?: object }) => data && "copied" in data);
        assert.deepEqual(held.map(({ metadata }: { metadata: { name: string } }) => metadata.name).sort(), names);
      });
    await team.bind("all", spec({ exceptNames: ["from", "kube-root-*", "pulse*", "*-old"] }));
    await untilHeldBy("a-1", "b-1");
    await add("c-old");
    await add("c-1");
    await untilHeldBy("a-1", "b-1", "c-1");
    await team.rebind("all", spec({ names: ["a-*", "c-*"], exceptNames: ["c-1"] }));
    await untilHeldBy("a-1", "a-old", "c-old");
    await team.rebind("all", spec({ matchLabels: { tier: "a" }, exceptNames: ["A-1", "a-ol"] }));
    await untilHeldBy("a-1", "a-old");
  });

  it("of a SecretGrant excludes exactly the namespaces that its globs match, whatever names tenants choose", async () => {
    const { both, value } = await newNeighbours();
    const { namespace } = both.reader;
    const bucket = { kind: "Secret", name: "bucket" };
    const change = (from: object, to: object = bucket) =>
      both.owner.api.merge(both.grantPath(), { spec: { from: [{ namespaceSelector: from }], to: [to] } });
    await both.grant("bucket", { from: [{ namespaceSelector: { exceptNames: ["tea*"] } }] });
    await both.reader.bind("harbor-s3", both.spec());
    await both.reader.until("harbor-s3", "NotGranted");
    await change({ names: [namespace], exceptNames: ["x*", `${namespace.slice(0, -1)}?`] });
    await both.barrier();
    await both.reader.until("harbor-s3", "NotGranted");
    await change({ exceptNames: [`${namespace}-*`, `x${namespace}`, namespace.toUpperCase(), namespace.slice(0, -1)] });
    await both.untilHeld(value);
    await change({ names: ["*"] }, { kind: "Secret", selector: { exceptNames: ["buck*"] } });
    await both.reader.until("harbor-s3", "GrantWithdrawn");
    await change({ names: ["*"] }, { kind: "Secret", selector: { names: ["b*"], exceptNames: ["buck", "bucket-*"] } });
    await both.reader.until("harbor-s3", "Synced");
  });

  it("of a rollout excludes workloads", async () => {
    const team = await createNamespace({ rules: rolloutRules });
    const shop = new Workloads(team);
    const rotate = () => team.secret("bucket", { access: secretText("access") });
    await rotate();
    await shop.deploy({ web: {}, "web-old": {}, worker: {} });
    const targets = [{ kind: "Deployment", selector: { names: ["web*", "worker"], exceptNames: ["*-old"] } }];
    await team.bind("rolls", { sources: [{ secret: { name: "bucket" } }], rollout: { targets } });
    await shop.rolledOut("rolls", 0);
    await rotate();
    await shop.rolledOut("rolls", 1);
    assert.deepEqual(await shop.restarts(), { web: 1, "web-old": 0, worker: 1 });
  });
});
