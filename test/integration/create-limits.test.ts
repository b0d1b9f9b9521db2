/** The namespaces, permissions and kinds for objects that a binding creates, and the reason where it can't create one. */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, installKind, type Kind, objectPath } from "../controller/kinds.ts";
import { registerSecret, secretText } from "../controller/leak-detector.ts";
import {
  ALL,
  accessKey,
  bucket,
  configMap,
  LABEL,
  made,
  makeHarbor,
  manifest,
  newMaker,
  ownRules,
  specOf,
} from "../controller/made.ts";
import { commandsIn, paste } from "../controller/paste.ts";
import { requestsFor } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { createNamespace, fieldsOf, type TestNamespace } from "../controller/test-namespace.ts";

const clusterThing: Kind = {
  group: "create.example.com",
  kind: "ClusterThing",
  plural: "clusterthings",
  scope: "Cluster",
  spec: { type: "object", properties: { token: { type: "string" }, note: { type: "string" } } },
};

const messageOf = ({ status }: AnyObject): string => status.conditions[0].message;
const finalizersOf = async (team: TestNamespace, name: string) => (await team.binding(name)).metadata.finalizers ?? [];

describe("an object that is created outside the binding's namespace", () => {
  it("in another namespace has no owner, and is deleted with its binding", async () => {
    const [team, other] = [await newMaker(), await createNamespace({ account: false })];
    await team.grant(ownRules(ALL), { namespace: other.namespace, role: "guest" });
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.bind("harbor", specOf(made({ namespace: other.namespace })));
    await team.until("harbor", "Synced");
    const { metadata } = await other.api.get(other.harborPath());
    assert.equal(metadata.ownerReferences, undefined);
    assert.equal(metadata.labels[LABEL], (await team.binding("harbor")).metadata.uid);
    assert.deepEqual(await finalizersOf(team, "harbor"), ["inlay.dev/release"]);
    await team.unbind("harbor");
    assert.equal(await other.api.find(other.harborPath()), undefined);
  });

  it("with cluster scope has no owner, and is deleted with its binding", async () => {
    const team = await newMaker();
    await installKind(team.api, clusterThing);
    await team.grantInCluster([{ apiGroups: [clusterThing.group], resources: [clusterThing.plural], verbs: ALL }]);
    const token = secretText("token");
    await team.secret("bucket", { accessKeyID: token });
    const path = objectPath(clusterThing, undefined, team.namespace);
    await team.bind("thing", {
      sources: bucket,
      targets: [
        {
          apiVersion: apiVersionOf(clusterThing),
          kind: clusterThing.kind,
          name: team.namespace,
          create: { manifest: { spec: { note: "n" } } },
          fields: [{ path: "spec.token", from: { source: "bucket", key: "accessKeyID" } }],
        },
      ],
    });
    await team.until("thing", "Synced");
    const { metadata, spec } = await team.api.get(path);
    assert.deepEqual(spec, { token, note: "n" });
    assert.equal(metadata.ownerReferences, undefined);
    await team.unbind("thing");
    assert.equal(await team.api.find(path), undefined);
  });

  it("waits for its namespace, with the permissions there or without", async () => {
    const names = ["create-later-0", "create-later-1"];
    const [granted, bare] = [await newMaker(), await newMaker()];
    await granted.grantInCluster(ownRules(ALL));
    const answers = [
      /no namespace create-later-0.*kubectl create namespace/,
      /namespace create-later-1 does not exist, or /,
    ];
    for (const [index, team] of [granted, bare].entries()) {
      await team.secret("bucket", { accessKeyID: secretText("access") });
      await team.bind("harbor", specOf(made({ namespace: names[index] })));
      const binding = await team.until("harbor", ["TargetNotFound", "Forbidden"][index] as string);
      assert.match(messageOf(binding), answers[index] as RegExp);
    }
    for (const name of names) await granted.api.create("/api/v1/namespaces", { metadata: { name } });
    await granted.until("harbor", "Synced", 30_000);
    await bare.until("harbor", "Forbidden", 30_000);
    await bare.grant(ownRules(ALL), { namespace: names[1] as string, role: "guest" });
    await bare.until("harbor", "Synced", 30_000);
  });

  it("does not change, and is neither recreated nor deleted, while its namespace is being deleted", async () => {
    const [team, other] = [await newMaker(), await createNamespace({ account: false })];
    await team.grantInCluster(ownRules(ALL));
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.bind("harbor", specOf(made({ namespace: other.namespace })));
    await team.until("harbor", "Synced");
    const namespace = `/api/v1/namespaces/${other.namespace}`;
    // An object with a finalizer delays the end of the namespace.
    const held = `${other.path("v1", "configmaps")}/held`;
    await other.api.create(other.path("v1", "configmaps"), {
      metadata: { name: "held", finalizers: ["example.com/hold"] },
    });
    await team.api.delete(namespace);
    const binding = await team.until("harbor", "TargetNotFound");
    assert.match(messageOf(binding), /namespace \S+ is being deleted/);
    await team.unbind("harbor");
    await other.api.merge(held, { metadata: { finalizers: null } });
    await team.untilGone(namespace);
  });
});

describe("the permissions to create an object", () => {
  const lacks: Record<string, [rights: string[], says: RegExp]> = {
    create: [ALL.filter((verb) => verb !== "create"), /may not create harborclusters\.goharbor\.io\/harbor/],
    "get, list, watch": [
      ["patch", "create", "delete"],
      /may not (watch|list|get) harborclusters\.goharbor\.io\/harbor/,
    ],
  };
  for (const [what, [rights, says]] of Object.entries(lacks)) {
    it(`are reported with the commands that grant them when ${what} is missing`, async () => {
      const team = await newMaker(rights);
      await team.secret("bucket", { accessKeyID: secretText("access") });
      await team.bind("harbor", specOf(made()));
      const message = messageOf(await team.until("harbor", "Forbidden"));
      assert.match(message, says);
      assert.equal(await team.api.find(team.harborPath()), undefined);
      await paste(commandsIn(message));
      await team.until("harbor", "Synced", 30_000);
    });
  }

  it("to correct and to delete are reported when they are missing", async () => {
    const team = await newMaker(["get", "list", "watch", "create"]);
    await makeHarbor(team);
    await team.api.merge(team.harborPath(), { spec: { version: "9.9.9" } });
    const message = messageOf(await team.until("harbor", "Forbidden"));
    assert.match(message, /may not patch harborclusters.*--verb=patch,delete/);
    await paste(commandsIn(message));
    await team.until("harbor", "Synced", 30_000);
    await team.unbind("harbor");
    assert.equal(await team.api.find(team.harborPath()), undefined);
  });

  for (const [apiVersion, kind, resource] of [
    ["rbac.authorization.k8s.io/v1", "Role", "roles"],
    ["rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings"],
    ["admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"],
    ["inlay.dev/v1alpha1", "SecretBinding", "secretbindings"],
  ] as const) {
    it(`do not permit a ${kind}, which no binding may write`, async () => {
      const team = await newMaker();
      const group = apiVersion.split("/")[0] as string;
      await team.grantInCluster([{ apiGroups: [group], resources: ["*"], verbs: ["*"] }]);
      await team.secret("bucket", { accessKeyID: secretText("access") });
      const mark = await auditLog().mark();
      const namespaceSelector = { names: [team.namespace] };
      const target = { apiVersion, kind, name: "mine", create: { manifest: {} } };
      await team.bind("one", specOf(target));
      await team.until("one", "ForbiddenKind");
      if (resource === "roles" || resource === "secretbindings") {
        await team.bind("many", specOf({ ...target, namespaceSelector }));
        await team.until("many", "ForbiddenKind");
      }
      const asked = (await requestsFor(team, mark)).filter(
        ({ as, resource: of }) => as && of === `${group}/${resource}`,
      );
      assert.deepEqual(asked, []);
    });
  }
});

describe("a manifest", () => {
  const wrong: Record<string, [reason: string, manifest: object, says: RegExp]> = {
    "an unknown field": ["UnknownField", manifest({ verzion: "2" }), /spec\.verzion: .* version\b/],
    "a value of another type": ["TypeMismatch", manifest({ version: 2 }), /spec\.version: .*string/],
    "a value that the kind's rules refuse": ["Rejected", { spec: { version: "2.5.0" } }, /create HarborCluster/],
    "a finalizer": ["InvalidBinding", { ...manifest(), metadata: { finalizers: ["example.com/x"] } }, /finalizers/],
    "an owner": [
      "InvalidBinding",
      { ...manifest(), metadata: { ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "x", uid: "x" }] } },
      /ownerReferences/,
    ],
    "a label of Inlay's own": [
      "InvalidBinding",
      { ...manifest(), metadata: { labels: { [LABEL]: "x" } } },
      new RegExp(LABEL),
    ],
    "a text in the path of a field": ["TypeMismatch", manifest({ storage: "s3" }), /spec\.storage/],
  };
  for (const [what, [reason, broken, says]] of Object.entries(wrong)) {
    it(`with ${what} is ${reason}, no object is created, and an object that was created before does not change`, async () => {
      const team = await newMaker();
      await team.secret("bucket", { accessKeyID: secretText("access") });
      await team.bind("harbor", specOf(made({ create: { manifest: broken } })));
      assert.match(messageOf(await team.until("harbor", reason)), says);
      assert.equal(await team.api.find(team.harborPath()), undefined);
      await team.rebind("harbor", specOf(made()));
      await team.until("harbor", "Synced");
      const { spec } = await team.api.get(team.harborPath());
      await team.rebind("harbor", specOf(made({ create: { manifest: broken } })));
      await team.until("harbor", reason);
      assert.deepEqual((await team.api.get(team.harborPath())).spec, spec);
    });
  }

  it("with a field that can't be changed any more is Immutable, with its path and the fix", async () => {
    const team = await newMaker();
    await team.secret("bucket", { accessKeyID: secretText("access") });
    const place = (host: string) => configMap({ create: { manifest: { immutable: true, data: { host } } } });
    await team.bind("place", specOf(place("one")));
    await team.until("place", "Synced");
    await team.rebind("place", specOf(place("two")));
    const message = messageOf(await team.until("place", "Immutable"));
    assert.match(message, /data\.host/);
    await team.api.delete(`${team.path("v1", "configmaps")}/place`);
    await team.until("place", "Synced");
    assert.equal((await team.api.get(`${team.path("v1", "configmaps")}/place`)).data.host, "two");
  });

  it("has lower precedence than the values of fields, in a Secret too", async () => {
    const team = await createNamespace({ rules: [{ apiGroups: [""], resources: ["secrets"], verbs: ALL }] });
    const [user, password] = [secretText("user"), secretText("password")];
    await team.secret("bucket", { user, password });
    const auth = { type: "kubernetes.io/basic-auth", data: { username: "aWdub3JlZA==", region: "ZXU=" } };
    const field = (name: string, key: string) => ({ path: `data.${name}`, from: { source: "bucket", key } });
    const target = { apiVersion: "v1", kind: "Secret", name: "auth", create: { manifest: auth } };
    await team.bind("auth", specOf({ ...target, fields: [field("username", "user"), field("password", "password")] }));
    await team.until("auth", "Synced");
    const { type, data } = await team.api.get(`${team.path("v1", "secrets")}/auth`);
    assert.equal(type, auth.type);
    const decoded = Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(`${value}`, "base64").toString()]),
    );
    assert.deepEqual(decoded, { username: user, password, region: "eu" });
    await team.rebind("auth", specOf({ ...target, create: { manifest: { stringData: { a: "b" } } } }));
    await team.until("auth", "ForbiddenPath");
  });

  it("creates no object that the binding reads", async () => {
    const team = await createNamespace({ rules: [{ apiGroups: [""], resources: ["secrets"], verbs: ALL }] });
    await team.secret("bucket", { a: registerSecret("sensitive-marker-value") });
    const { metadata } = await team.api.get(`${team.path("v1", "secrets")}/bucket`);
    const field = { path: "data.b", from: { source: "bucket", key: "a" } };
    await team.bind(
      "self",
      specOf({ apiVersion: "v1", kind: "Secret", name: "bucket", create: { manifest: {} }, fields: [field] }),
    );
    assert.match(messageOf(await team.until("self", "InvalidBinding")), /a source of this binding/);
    assert.deepEqual((await team.api.get(`${team.path("v1", "secrets")}/bucket`)).metadata, metadata);
  });
});

describe("a value that becomes missing in a created object", () => {
  const endpoint = { path: "spec.storage.spec.s3.regionendpoint", from: { source: "place", key: "host" } };
  const both = (place: object) => ({
    sources: [...bucket, { name: "place", secret: { name: "place" }, ...place }],
    targets: [made({ fields: [accessKey, endpoint] })],
  });
  const withPlace = async (place: object) => {
    const team = await newMaker();
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.secret("place", { host: secretText("host") });
    await team.bind("harbor", both(place));
    await team.until("harbor", "Synced");
    const before = await team.s3();
    await team.api.delete(`${team.path("v1", "secrets")}/place`);
    const rotated = secretText("rotated");
    await team.secret("bucket", { accessKeyID: rotated });
    return { team, before, rotated };
  };

  it("stays, and nothing is written, with onMissing: Wait", async () => {
    const { team, before } = await withPlace({});
    await team.until("harbor", "SourceNotFound");
    assert.deepEqual(await team.s3(), before);
  });

  it("is removed, and nothing else is written, with onMissing: Remove", async () => {
    const { team, before } = await withPlace({ onMissing: "Remove" });
    await team.until("harbor", "SourceNotFound");
    await eventually(async () => {
      const { regionendpoint, accesskey } = await team.s3();
      assert.equal(regionendpoint, undefined);
      assert.equal(accesskey, before.accesskey);
    });
  });

  it("stays, and the others are written, if it is optional", async () => {
    const { team, before, rotated } = await withPlace({ optional: true });
    await eventually(async () => assert.equal((await team.s3()).accesskey, rotated));
    await team.until("harbor", "Synced");
    assert.equal((await team.s3()).regionendpoint, before.regionendpoint);
    await team.secret("place", { host: "back" });
    await eventually(async () => assert.equal((await team.s3()).regionendpoint, "back"));
  });

  it("is removed, and the others are written, if it is optional with onMissing: Remove", async () => {
    const { team, rotated } = await withPlace({ optional: true, onMissing: "Remove" });
    await eventually(async () => {
      const { regionendpoint, accesskey } = await team.s3();
      assert.deepEqual([regionendpoint, accesskey], [undefined, rotated]);
    });
    const harbor = await team.api.get(team.harborPath());
    assert.doesNotMatch(JSON.stringify(fieldsOf(harbor, team.manager("harbor"))), /regionendpoint/);
  });

  it("is omitted from a new object if it is optional", async () => {
    const team = await newMaker();
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.bind("harbor", both({ optional: true }));
    await team.until("harbor", "Synced");
    assert.equal((await team.s3()).regionendpoint, undefined);
  });
});
