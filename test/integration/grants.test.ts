/** Reading what is another namespace's: with a SecretGrant there and the account's own right, and by neither alone. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api, RequestFailed } from "../controller/api.ts";
import { isOfBarrier } from "../controller/barrier.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/hunted.ts";
import { type Neighbours, newNeighbours } from "../controller/neighbours.ts";
import { commandsIn, paste } from "../controller/paste.ts";
import { CONTROLLER, requestsFor } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { harborTarget, RESTARTED_WITHIN_MS } from "../controller/team.ts";

/** "Within a second", on a machine that has other things to do. */
const A_SECOND = 5_000;

const messageOf = (binding: AnyObject): string => binding.status.conditions[0].message;

/** The bound target of a reader whom the owner granted his Secret. */
async function granted(source: object = {}, grant: Parameters<Neighbours["grant"]>[1] = {}) {
  const { both, value } = await newNeighbours();
  await both.grant("bucket", grant);
  await both.reader.bind("harbor-s3", both.spec(source));
  await both.untilHeld(value);
  await both.reader.until("harbor-s3", "Synced");
  return { both, value };
}

describe("a source in another namespace", () => {
  it("is not even looked at without a SecretGrant there, and comes with the command that the condition tells", async () => {
    const { both, value } = await newNeighbours();
    const mark = await auditLog().mark();
    await both.reader.bind("harbor-s3", both.spec());
    const refused = await both.reader.until("harbor-s3", "NotGranted");
    await both.reader.barrier();
    const requests = await requestsFor(both.reader, mark);
    assert.deepEqual(
      requests.filter(({ namespace }) => namespace === both.owner.namespace),
      [],
    );
    const message = messageOf(refused);
    const { reader, owner } = both;
    assert.ok(
      message.includes(`no SecretGrant in namespace ${owner.namespace} lets ServiceAccount ${reader.namespace}/inlay`),
    );
    assert.deepEqual(await paste(commandsIn(message)), []);
    await both.untilHeld(value, A_SECOND);
    const { items } = await owner.api.get(owner.path("inlay.dev/v1alpha1", "secretgrants"));
    assert.deepEqual(
      items.map(({ spec }: AnyObject) => spec),
      [
        {
          from: [{ namespace: reader.namespace, serviceAccountName: "inlay" }],
          to: [{ kind: "Secret", name: "bucket" }],
        },
      ],
    );
  });

  it("needs the account's own right there too", async () => {
    const { both, value } = await newNeighbours({ rights: false });
    await both.grant();
    await both.reader.bind("harbor-s3", both.spec());
    const refused = await both.reader.until("harbor-s3", "Forbidden");
    assert.equal((await both.reader.s3()).accesskey, undefined);
    await paste(commandsIn(messageOf(refused)));
    await both.untilHeld(value, 10_000);
  });

  it("is read as the account, and asks as the controller for the grant and the namespace alone", async () => {
    const { both, value } = await newNeighbours();
    const mark = await auditLog().mark();
    await both.grant();
    await both.reader.bind("harbor-s3", both.spec());
    await both.untilHeld(value);
    await both.reader.until("harbor-s3", "Synced");
    const account = `system:serviceaccount:${both.reader.namespace}:inlay`;
    const there = (await auditLog().since(mark)).filter(
      ({ user, namespace }) => user === CONTROLLER && namespace === both.owner.namespace,
    );
    const what = new Set(there.map(({ as, verb, resource }) => `${as ?? "itself"} ${verb} ${resource}`));
    assert.deepEqual([...what].sort(), [
      "itself get inlay.dev/secretgrants",
      "itself get namespaces",
      `${account} get secrets`,
      `${account} list secrets`,
    ]);
  });

  it("follows rotations, and asks for nothing while nothing changes", async () => {
    const { both } = await granted();
    await both.untilHeld(await both.rotate());
    const requests = await both.reader.requestsDuring(async () => {
      await both.owner.api.create(both.owner.path("v1", "secrets"), { metadata: { name: "another" } });
      await both.grant("another", { from: [{ namespace: "nobody" }] });
    });
    assert.deepEqual(requests, []);
  });

  it("in the binding's own namespace, spelled out, takes no grant", async () => {
    const { both } = await newNeighbours();
    const accessKeyID = secretText("own");
    await both.reader.secret("bucket", { accessKeyID });
    await both.reader.bind("harbor-s3", both.spec({ secret: { name: "bucket", namespace: both.reader.namespace } }));
    await both.untilHeld(accessKeyID);
  });

  it("may have the name of another source, if one of them is called otherwise; and may be a ConfigMap", async () => {
    const { both, value } = await newNeighbours();
    const own = secretText("own");
    await both.reader.secret("bucket", { secretkey: own });
    await both.owner.api.create(both.owner.path("v1", "configmaps"), {
      metadata: { name: "place" },
      data: { host: "s3.example.com" },
    });
    const to = [
      { kind: "Secret", name: "bucket" },
      { kind: "ConfigMap", name: "place" },
    ];
    await both.grant("both", { to });
    const { namespace } = both.owner;
    await both.reader.bind("harbor-s3", {
      sources: [
        { secret: { name: "bucket" } },
        { name: "theirs", secret: { name: "bucket", namespace } },
        { configMap: { name: "place", namespace } },
      ],
      targets: [
        harborTarget({
          accesskey: { template: "{{theirs.accessKeyID}}/{{bucket.secretkey}}" },
          regionendpoint: { template: "https://{{place.host}}" },
        }),
      ],
    });
    await both.untilHeld(`${value}/${own}`);
    assert.equal((await both.reader.s3()).regionendpoint, "https://s3.example.com");
  });

  it("waits with those of its own namespace until all carry one value of requireSame", async () => {
    const { both, value } = await newNeighbours();
    await both.grant();
    await both.reader.secret("own", { secretkey: secretText("own") });
    const mark = (team: Neighbours["owner"], name: string, to: string) =>
      team.api.merge(`${team.path("v1", "secrets")}/${name}`, {
        metadata: { annotations: { "example.com/rotation": to } },
      });
    await mark(both.reader, "own", "2");
    await mark(both.owner, "bucket", "1");
    const { sources } = both.spec() as { sources: object[] };
    await both.reader.bind("harbor-s3", {
      ...both.spec(),
      requireSame: "example.com/rotation",
      sources: [...sources, { secret: { name: "own" } }],
    });
    await both.reader.until("harbor-s3", "SourcesDiffer");
    await mark(both.owner, "bucket", "2");
    await both.untilHeld(value);
  });
});

describe("a SecretGrant", () => {
  type Said = Parameters<Neighbours["grant"]>[1];
  const labelled = { "example.com/tier": "gold", env: "prod" };
  const gold = { key: "example.com/tier", operator: "In", values: ["silver", "gold"] };
  const bucket = [{ kind: "Secret", name: "bucket" }];
  const everything = [{ kind: "Secret", selector: { names: ["*"] } }];
  const anywhere = (serviceAccountName?: string) => ({ namespaceSelector: { names: ["*"] }, serviceAccountName });
  const fits: Record<string, (reader: string) => Said> = {
    "the namespace": (namespace) => ({ from: [{ namespace }] }),
    "the namespace among others": (namespace) => ({ from: [{ namespace: "other" }, { namespace }] }),
    "the account": (namespace) => ({ from: [{ namespace, serviceAccountName: "inlay" }] }),
    "namespaces by a wildcard": (namespace) => ({
      from: [{ namespaceSelector: { names: ["x", `${namespace.slice(0, -1)}?`] } }],
    }),
    "all namespaces": () => ({ from: [anywhere()] }),
    "namespaces by a label": () => ({ from: [{ namespaceSelector: { matchLabels: { env: "prod" } } }] }),
    "namespaces by expressions": () => ({ from: [{ namespaceSelector: { matchExpressions: [gold] } }] }),
    "the Secret by a wildcard": () => ({ to: [{ kind: "Secret", selector: { names: ["no", "b*t"] } }] }),
    "the Secret by a label": () => ({ to: [{ kind: "Secret", selector: { matchLabels: { env: "prod" } } }] }),
    "the Secret by name, label and expressions": () => ({
      to: [{ kind: "Secret", selector: { names: ["b*"], matchLabels: { env: "prod" }, matchExpressions: [gold] } }],
    }),
    "the Secret among others": () => ({ to: [{ kind: "ConfigMap", name: "bucket" }, ...bucket] }),
  };
  const doesNotFit: Record<string, (reader: string) => Said> = {
    "another namespace": () => ({ from: [{ namespace: "other" }], to: everything }),
    "a namespace of which this one is a part": (namespace) => ({ from: [{ namespace: `${namespace}0` }] }),
    "another account": (namespace) => ({
      from: [{ namespace, serviceAccountName: "rotator" }, anywhere("other")],
      to: everything,
    }),
    "namespaces of another label": () => ({ from: [{ namespaceSelector: { matchLabels: { env: "test" } } }] }),
    "namespaces of one label, and not of the other": () => ({
      from: [
        { namespaceSelector: { matchLabels: { env: "prod" }, matchExpressions: [{ ...gold, operator: "NotIn" }] } },
      ],
    }),
    "namespaces by labels, of another name": () => ({
      from: [{ namespaceSelector: { names: ["x*"], matchLabels: labelled } }],
    }),
    "another Secret": () => ({ to: [{ kind: "Secret", name: "bucket2" }] }),
    "a ConfigMap of that name": () => ({ to: [{ kind: "ConfigMap", name: "bucket" }] }),
    "Secrets of another label": () => ({ to: [{ kind: "Secret", selector: { matchLabels: { env: "test" } } }] }),
    "Secrets without the label": () => ({
      to: [
        { kind: "Secret", selector: { names: ["b*"], matchExpressions: [{ key: "env", operator: "DoesNotExist" }] } },
      ],
    }),
  };
  let both: Neighbours;
  let value: string;
  before(async () => {
    ({ both, value } = await newNeighbours());
    await both.reader.api.merge(`/api/v1/namespaces/${both.reader.namespace}`, { metadata: { labels: labelled } });
    await both.owner.api.merge(`${both.owner.path("v1", "secrets")}/bucket`, { metadata: { labels: labelled } });
    await both.reader.bind("harbor-s3", both.spec({ onMissing: "Remove" }));
  });
  afterEach(async () => {
    await both.withdraw();
    await both.untilHeld(undefined);
  });
  for (const [what, grant] of Object.entries(fits)) {
    it(`for ${what} is enough, and is enough no more when it is withdrawn`, async () => {
      await both.grant("bucket", grant(both.reader.namespace));
      await both.untilHeld(value, A_SECOND);
    });
  }
  for (const [what, grant] of Object.entries(doesNotFit)) {
    it(`for ${what} lets nothing through`, async () => {
      await both.grant("bucket", grant(both.reader.namespace));
      await both.barrier();
      assert.equal((await both.reader.s3()).accesskey, undefined);
    });
  }
});

describe("a SecretGrant that is withdrawn", () => {
  const untilWithdrawn = async ({ reader }: Neighbours, withinMs = A_SECOND) => {
    const binding = await reader.until("harbor-s3", "GrantWithdrawn", withinMs);
    assert.match(messageOf(binding), /the grant for what was copied here was withdrawn, so rotate those values/);
    return binding;
  };

  it("leaves what was written, stops what comes after, and is told until it is given again", async () => {
    const { both, value } = await granted();
    await both.withdraw();
    await untilWithdrawn(both);
    const rotated = await both.rotate();
    await both.barrier();
    assert.equal((await both.reader.s3()).accesskey, value);
    await eventually(async () => {
      const told = (await both.reader.events("harbor-s3")).filter(({ reason }) => reason === "GrantWithdrawn");
      assert.deepEqual(
        told.map(({ type }) => type),
        ["Warning"],
      );
    });
    await both.grant("again");
    await both.untilHeld(rotated, A_SECOND);
    await both.reader.until("harbor-s3", "Synced");
  });

  it("takes out what was written where the source says so, and goes on telling that it has to be rotated", async () => {
    const { both } = await granted({ onMissing: "Remove" });
    await both.withdraw();
    await both.untilHeld(undefined);
    await untilWithdrawn(both);
    await both.reader.rebind("harbor-s3", { defaults: { onConflict: "Force" } });
    await untilWithdrawn(both);
  });

  it("leaves Ready true where the source is optional, with a note", async () => {
    const { both, value } = await granted({ optional: true });
    await both.withdraw();
    const binding = await eventually(async () => {
      const found = await both.reader.until("harbor-s3", "Synced");
      assert.match(messageOf(found), /left out: .* was withdrawn, so rotate those values/);
      return found;
    });
    assert.equal(binding.status.conditions[0].status, "True");
    assert.equal((await both.reader.s3()).accesskey, value);
  });

  it("never lets a value through that came after it went, however short", async () => {
    const { both, value } = await granted();
    let held = value;
    for (let round = 0; round < 8; round++) {
      await both.withdraw();
      await both.rotate();
      await both.barrier();
      assert.equal((await both.reader.s3()).accesskey, held);
      await untilWithdrawn(both);
      held = await both.rotate();
      await both.grant();
      await both.untilHeld(held);
    }
  });

  const ends: Record<string, [said: Parameters<Neighbours["grant"]>[1], end: (both: Neighbours) => Promise<unknown>]> =
    {
      "is changed to another Secret": [
        {},
        (both) => both.owner.api.merge(both.grantPath(), { spec: { to: [{ kind: "Secret", name: "other" }] } }),
      ],
      "is changed to another account": [
        {},
        (both) =>
          both.owner.api.merge(both.grantPath(), {
            spec: { from: [{ namespace: both.reader.namespace, serviceAccountName: "other" }] },
          }),
      ],
      "goes by a label that is taken from the Secret": [
        { to: [{ kind: "Secret", selector: { matchLabels: { shared: "yes" } } }] },
        (both) =>
          both.owner.api.merge(`${both.owner.path("v1", "secrets")}/bucket`, {
            metadata: { labels: { shared: null } },
          }),
      ],
      "goes by a label that is taken from the namespace": [
        { from: [{ namespaceSelector: { matchLabels: { reads: "buckets" } } }] },
        (both) =>
          both.reader.api.merge(`/api/v1/namespaces/${both.reader.namespace}`, {
            metadata: { labels: { reads: null } },
          }),
      ],
    };
  for (const [how, [said, end]] of Object.entries(ends)) {
    it(`because it ${how} stops what comes after`, async () => {
      const { both, value } = await newNeighbours();
      await both.owner.api.merge(`${both.owner.path("v1", "secrets")}/bucket`, {
        metadata: { labels: { shared: "yes" } },
      });
      await both.reader.api.merge(`/api/v1/namespaces/${both.reader.namespace}`, {
        metadata: { labels: { reads: "buckets" } },
      });
      await both.grant("bucket", said);
      await both.reader.bind("harbor-s3", both.spec());
      await both.untilHeld(value);
      await end(both);
      await both.rotate();
      await untilWithdrawn(both);
      await both.barrier();
      assert.equal((await both.reader.s3()).accesskey, value);
    });
  }

  it("while the controller was away stops what came meanwhile, and a start after that writes nothing", async () => {
    const { both, value } = await granted();
    const { controller } = both.reader;
    await controller.stop();
    await both.rotate();
    await both.withdraw();
    await controller.start();
    await untilWithdrawn(both, RESTARTED_WITHIN_MS);
    assert.equal((await both.reader.s3()).accesskey, value);
    await controller.stop();
    const mark = await auditLog().mark();
    await controller.start();
    await both.barrier();
    const writes = (await auditLog().controllerWritesSince(mark)).filter(
      ({ namespace }) => namespace === both.reader.namespace,
    );
    assert.ok(writes.some(isOfBarrier));
    assert.deepEqual(
      writes.filter((write) => !isOfBarrier(write)),
      [],
    );
  });

  it("goes with its namespace, though both are held back from being deleted", async () => {
    const { both, value } = await granted();
    const held = { metadata: { finalizers: ["example.com/held"] } };
    const secret = `${both.owner.path("v1", "secrets")}/bucket`;
    for (const path of [secret, both.grantPath()]) await both.owner.api.merge(path, held);
    await both.owner.api.delete(`/api/v1/namespaces/${both.owner.namespace}`);
    await both.rotate();
    const binding = await untilWithdrawn(both);
    assert.match(messageOf(binding), /is gone or being deleted, and its SecretGrants with it/);
    assert.equal((await both.reader.s3()).accesskey, value);
    for (const path of [secret, both.grantPath()]) await both.owner.api.merge(path, { metadata: { finalizers: null } });
  });
});

describe("somebody who would read what nobody granted him", () => {
  const MALLORY = "bob";

  /** A tenant with a role in the reader's namespace, who gets what he asks for refused with 403 where RBAC stops him. */
  async function tenant({ reader }: Neighbours, role: "edit" | "admin") {
    const mallory = new Api(controlPlane(), MALLORY);
    await reader.api.create(reader.path("rbac.authorization.k8s.io/v1", "rolebindings"), {
      metadata: { name: "mallory" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
      subjects: [{ kind: "User", name: MALLORY, apiGroup: "rbac.authorization.k8s.io" }],
    });
    await eventually(() => mallory.get(reader.path("v1", "secrets")), 10_000);
    return mallory;
  }
  const isForbidden = (error: unknown) => error instanceof RequestFailed && error.status === 403;
  const bindings = ({ reader }: Neighbours) => reader.path("inlay.dev/v1alpha1", "secretbindings");
  const grants = (team: Neighbours["owner"]) => team.path("inlay.dev/v1alpha1", "secretgrants");
  const binding = (both: Neighbours, spec = both.spec()) => ({
    apiVersion: "inlay.dev/v1alpha1",
    kind: "SecretBinding",
    metadata: { name: "harbor-s3" },
    spec,
  });
  const forged = (both: Neighbours) => ({
    apiVersion: "inlay.dev/v1alpha1",
    kind: "SecretGrant",
    metadata: { name: "forged" },
    spec: {
      from: [{ namespace: both.reader.namespace }],
      to: [{ kind: "Secret", selector: { names: ["*"] } }],
    },
  });
  const staysOut = async (both: Neighbours, reason = "NotGranted", barrier = () => both.barrier()) => {
    await both.reader.until("harbor-s3", reason);
    await barrier();
    await both.reader.until("harbor-s3", reason);
    assert.equal((await both.reader.s3()).accesskey, undefined);
  };
  /** Waits until the account was refused once more. */
  const refusedAgain = async ({ reader }: Neighbours) => {
    const mark = await auditLog().mark();
    await eventually(async () => {
      const requests = await requestsFor(reader, mark);
      assert.ok(requests.some(({ as, code }) => as !== undefined && code === 403));
    });
    await reader.barrier();
  };

  it("may name it in a binding, may not make the grant there, and gains nothing by one in his own namespace", async () => {
    const { both } = await newNeighbours();
    const mallory = await tenant(both, "admin");
    await mallory.create(bindings(both), binding(both));
    await assert.rejects(mallory.create(grants(both.owner), forged(both)), isForbidden);
    await eventually(() => mallory.create(grants(both.reader), forged(both)), 10_000);
    await staysOut(both);
  });

  it("may make no grant at all with the role edit", async () => {
    const { both } = await newNeighbours();
    const mallory = await tenant(both, "edit");
    for (const team of [both.owner, both.reader]) {
      await assert.rejects(mallory.create(grants(team), forged(both)), isForbidden);
    }
  });

  it("has no binding write the grant for him, though its account may", async () => {
    const { both } = await newNeighbours();
    const all = ["get", "list", "watch", "create", "patch", "delete"];
    const rights = [{ apiGroups: ["inlay.dev"], resources: ["secretgrants"], verbs: all }];
    await both.reader.grant(rights, { role: "grants", namespace: both.owner.namespace });
    const mallory = await tenant(both, "edit");
    await both.reader.secret("own", { a: secretText("own") });
    const { apiVersion, kind, spec } = forged(both);
    const target = { apiVersion, kind, name: "forged", namespace: both.owner.namespace };
    await mallory.create(
      bindings(both),
      binding(both, {
        sources: [{ secret: { name: "own" } }],
        targets: [{ ...target, create: { manifest: { spec } } }],
      }),
    );
    await both.reader.until("harbor-s3", "ForbiddenKind");
    assert.deepEqual((await both.owner.api.get(grants(both.owner))).items, []);
  });

  it("swaps the name of a Secret that was granted for another, after the binding was let in", async () => {
    const { both, value } = await granted();
    const mallory = await tenant(both, "edit");
    await both.rotate("other");
    const spec = both.spec({ name: "bucket", secret: { name: "other", namespace: both.owner.namespace } });
    await mallory.merge(both.reader.bindingPath("harbor-s3"), { spec });
    await both.reader.until("harbor-s3", "NotGranted");
    await both.barrier();
    assert.equal((await both.reader.s3()).accesskey, value);
  });

  it("uses what was granted to another account, or in another namespace", async () => {
    const { both } = await newNeighbours();
    const mallory = await tenant(both, "edit");
    await both.grant("account", { from: [{ namespace: both.reader.namespace, serviceAccountName: "rotator" }] });
    await both.grant("namespace", { from: [{ namespace: both.owner.namespace }] });
    await mallory.create(bindings(both), binding(both));
    await staysOut(both);
  });

  it("finds a grant in kube-system, which is closed to bindings", async () => {
    const { both } = await newNeighbours();
    const spec = { sources: [{ secret: { name: "bucket", namespace: "kube-system" } }] };
    await both.reader.bind("harbor-s3", { ...both.spec(), ...spec });
    await both.reader.until("harbor-s3", "ForbiddenNamespace");
  });

  it("hopes for a grant without the right: the account's own RBAC decides too", async () => {
    const { both } = await newNeighbours({ rights: false });
    const mallory = await tenant(both, "edit");
    await both.grant("all", {
      from: [{ namespaceSelector: { names: ["*"] } }],
      to: [{ kind: "Secret", selector: { names: ["*"] } }],
    });
    await mallory.create(bindings(both), binding(both));
    await staysOut(both, "Forbidden", () => refusedAgain(both));
  });
});
