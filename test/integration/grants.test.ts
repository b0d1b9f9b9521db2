/**
 * A source of another namespace requires a SecretGrant there and the permission of the account. Neither alone is enough.
 */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { secretText } from "../controller/leak-detector.ts";
import { type Neighbours, newGranted, newNeighbours } from "../controller/neighbours.ts";
import { commandsIn, paste } from "../controller/paste.ts";
import { CONTROLLER, requestsFor } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { harborTarget } from "../controller/test-namespace.ts";

/** "Within a second" on a busy machine. */
const A_SECOND = 5_000;

const messageOf = (binding: AnyObject): string => binding.status.conditions[0].message;

describe("a source in another namespace", () => {
  it("is not read without a SecretGrant there, and is written after the command in the condition", async () => {
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
    assert.ok(message.includes(`SecretGrant in namespace ${owner.namespace} `), message);
    assert.ok(message.includes(`ServiceAccount ${reader.namespace}/inlay`), message);
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

  it("requires the permission of the account there too", async () => {
    const { both, value } = await newNeighbours({ rights: false });
    await both.grant();
    await both.reader.bind("harbor-s3", both.spec());
    const refused = await both.reader.until("harbor-s3", "Forbidden");
    assert.equal((await both.reader.s3()).accesskey, undefined);
    await paste(commandsIn(messageOf(refused)));
    await both.untilHeld(value, 10_000);
  });

  it("is read as the account, and the controller itself reads only the grant and the namespace", async () => {
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

  it("follows rotations, and needs no request while nothing changes", async () => {
    const { both } = await newGranted();
    await both.untilHeld(await both.rotate());
    const requests = await both.reader.requestsDuring(async () => {
      await both.owner.api.create(both.owner.path("v1", "secrets"), { metadata: { name: "another" } });
      await both.grant("another", { from: [{ namespace: "absent" }] });
    });
    assert.deepEqual(requests, []);
  });

  it("requires no grant if that namespace is the binding's own", async () => {
    const { both } = await newNeighbours();
    const accessKeyID = secretText("own");
    await both.reader.secret("bucket", { accessKeyID });
    await both.reader.bind("harbor-s3", both.spec({ secret: { name: "bucket", namespace: both.reader.namespace } }));
    await both.untilHeld(accessKeyID);
  });

  it("may have the name of another source, if one of them gets another name, and may be a ConfigMap", async () => {
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

  it("waits with the sources of the own namespace until all have the same value of requireSame", async () => {
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
    await both.reader.until("harbor-s3", "SourceAnnotationMismatch");
    await mark(both.owner, "bucket", "2");
    await both.untilHeld(value);
  });
});

describe("a SecretGrant", () => {
  type Entries = Parameters<Neighbours["grant"]>[1];
  const labelled = { "example.com/tier": "gold", env: "prod" };
  const gold = { key: "example.com/tier", operator: "In", values: ["silver", "gold"] };
  const bucket = [{ kind: "Secret", name: "bucket" }];
  const everything = [{ kind: "Secret", selector: { names: ["*"] } }];
  const anywhere = (serviceAccountName?: string) => ({ namespaceSelector: { names: ["*"] }, serviceAccountName });
  const fits: Record<string, (reader: string) => Entries> = {
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
  const doesNotFit: Record<string, (reader: string) => Entries> = {
    "another namespace": () => ({ from: [{ namespace: "other" }], to: everything }),
    "a namespace with a longer name": (namespace) => ({ from: [{ namespace: `${namespace}0` }] }),
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
    it(`for ${what} is enough, and is not any more when it is withdrawn`, async () => {
      await both.grant("bucket", grant(both.reader.namespace));
      await both.untilHeld(value, A_SECOND);
    });
  }
  for (const [what, grant] of Object.entries(doesNotFit)) {
    it(`for ${what} permits nothing`, async () => {
      await both.grant("bucket", grant(both.reader.namespace));
      await both.barrier();
      assert.equal((await both.reader.s3()).accesskey, undefined);
    });
  }
});
