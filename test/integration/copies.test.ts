/** Copies of a Secret in other namespaces: made, kept equal, put back, and taken away, each beside what others made. */
import assert from "node:assert/strict";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/hunted.ts";
import { ALL } from "../controller/made.ts";
import { newTeam, type Team } from "../controller/team.ts";

const mayCopy = [{ apiGroups: [""], resources: ["secrets"], verbs: ALL }];
const namespaces = [{ apiGroups: [""], resources: ["namespaces"], verbs: ["get", "list", "watch"] }];

/** A copy of the Secret `blog`, where the target says. */
const copy = (where: object, more: object = {}) => ({
  sources: [{ secret: { name: "blog" } }],
  targets: [
    {
      apiVersion: "v1",
      kind: "Secret",
      name: "blog",
      ...where,
      create: { manifest: { type: "Opaque", metadata: { labels: { copied: "yes" } } } },
      fields: [{ path: "data", from: { source: "blog" } }],
      ...more,
    },
  ],
});

const secretPath = (namespace: string, name = "blog") => `/api/v1/namespaces/${namespace}/secrets/${name}`;

let made = 0;
/** Makes a namespace of its own, with labels. */
async function newNamespace(team: Team, labels: object = {}): Promise<string> {
  const name = `copies-${++made}-${team.namespace}`;
  await team.api.create("/api/v1/namespaces", { metadata: { name, labels } });
  return name;
}

/** Waits until the copy there is like the source. */
async function untilCopied(team: Team, namespace: string): Promise<void> {
  await eventually(async () => {
    const [source, found] = [await team.api.get(secretPath(team.namespace)), await team.api.get(secretPath(namespace))];
    assert.deepEqual(found.data, source.data);
    assert.equal(found.metadata.labels.copied, "yes");
  });
}

async function newCopier(): Promise<Team> {
  const team = await newTeam({ rules: mayCopy });
  await team.grantInCluster([...mayCopy, ...namespaces]);
  await team.secret("blog", { user: secretText("user"), binary: new Uint8Array([0, 255, 254, 1]) });
  return team;
}

describe("a copy of a Secret in another namespace", () => {
  it("has all of its data as it stands, and its type from the manifest", async () => {
    const team = await newCopier();
    const namespace = await newNamespace(team);
    await team.bind("blog", copy({ namespace }));
    await team.until("blog", "Synced");
    await untilCopied(team, namespace);
    const { type, metadata } = await team.api.get(secretPath(namespace));
    assert.equal(type, "Opaque");
    assert.equal(metadata.ownerReferences, undefined);
  });

  it("is kept equal: keys that are changed, added and removed follow, and edits are put back", async () => {
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

  it("is never made over a Secret of others", async () => {
    const team = await newCopier();
    const namespace = await newNamespace(team);
    const theirs = await team.api.create(`/api/v1/namespaces/${namespace}/secrets`, {
      metadata: { name: "blog", labels: { theirs: "yes" } },
      data: { user: "dGhlaXJz" },
    });
    await team.bind("blog", copy({ namespace }, { conflicts: "Force" }));
    await team.until("blog", "Conflict");
    await team.unbind("blog");
    assert.deepEqual(await team.api.get(secretPath(namespace)), theirs);
  });
});
