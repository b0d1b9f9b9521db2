/**
 * Sources with `granted`. Inlay reads them only with a SecretGrant, in their own namespace too. The grant decides instead
 * of the author.
 */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { Neighbours, newNeighbours, newOwnReader } from "../controller/neighbours.ts";
import { commandsIn, paste } from "../controller/paste.ts";
import { requestsFor } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";

const messageOf = (binding: AnyObject): string => binding.status.conditions[0].message;

/** Waits until the controller has read all grants, and the binding has still written nothing. */
async function staysOut(both: Neighbours): Promise<void> {
  await both.barrier();
  assert.equal((await both.reader.s3()).accesskey, undefined);
}

describe("a source with granted", () => {
  it("is not read without a SecretGrant in its namespace, and is written after the command in the condition", async () => {
    const { both, value } = await newOwnReader();
    const team = both.reader;
    const mark = await auditLog().mark();
    await team.bind("harbor-s3", both.spec());
    const refused = await team.until("harbor-s3", "NotGranted");
    await both.barrier();
    const ofBucket = async () =>
      (await requestsFor(team, mark)).filter(({ resource, name }) => resource === "secrets" && name === "bucket");
    assert.deepEqual(await ofBucket(), []);
    assert.deepEqual(await paste(commandsIn(messageOf(refused))), []);
    await both.untilHeld(value);
    assert.notDeepEqual(await ofBucket(), []);
    const { items } = await team.api.get(team.path("inlay.dev/v1alpha1", "secretgrants"));
    assert.deepEqual(
      items.map(({ spec }: AnyObject) => spec.from),
      [[{ namespace: team.namespace, serviceAccountName: "inlay" }]],
    );
  });

  it("is not permitted by a grant for all other namespaces, and is by one that names its own", async () => {
    const { both, value } = await newOwnReader();
    const { namespace, api } = both.reader;
    await api.merge(`/api/v1/namespaces/${namespace}`, { metadata: { labels: { env: "prod" } } });
    const selectors = [{ names: ["*"] }, { names: [namespace] }, { matchLabels: { env: "prod" } }];
    await both.grant("others", { from: selectors.map((namespaceSelector) => ({ namespaceSelector })) });
    await both.reader.bind("harbor-s3", both.spec());
    await both.reader.until("harbor-s3", "NotGranted");
    await staysOut(both);
    await both.grant("own");
    await both.untilHeld(value);
    await both.untilHeld(await both.rotate());
  });

  it("may be a ConfigMap, and may be of another namespace, which needs no second grant", async () => {
    const { both, value } = await newNeighbours();
    const { owner, reader } = both;
    await both.grant();
    const at = { metadata: { name: "place" }, data: { host: "s3.example.com" } };
    await reader.api.create(reader.path("v1", "configmaps"), at);
    const { targets } = both.spec() as { targets: { fields: object[] }[] };
    const place = { path: "spec.storage.spec.s3.regionendpoint", from: { source: "place", key: "host" } };
    await reader.bind("harbor-s3", {
      sources: [
        { secret: { name: "bucket", namespace: owner.namespace, granted: true } },
        { configMap: { name: "place", granted: true } },
      ],
      targets: targets.map((target) => ({ ...target, fields: [...target.fields, place] })),
    });
    await reader.until("harbor-s3", "NotGranted");
    await new Neighbours(reader, reader).grant("place", { to: [{ kind: "ConfigMap", name: "place" }] });
    await both.untilHeld(value);
    assert.equal((await reader.s3()).regionendpoint, "s3.example.com");
  });

  for (const [onMissing, left] of [
    ["Wait", (value: string) => value],
    ["Remove", () => undefined],
  ] as const)
    it(`whose grant is withdrawn reports GrantWithdrawn, and ${onMissing} works as for another namespace`, async () => {
      const { both, value } = await newOwnReader();
      await both.grant();
      await both.reader.bind("harbor-s3", both.spec({ onMissing }));
      await both.untilHeld(value);
      await both.withdraw();
      const { status } = await both.reader.until("harbor-s3", "GrantWithdrawn");
      assert.deepEqual(status.copiedSources, [`Secret ${both.reader.namespace}/bucket`]);
      const rotated = await both.rotate();
      await both.barrier();
      await both.untilHeld(left(value));
      await both.grant("again");
      await both.untilHeld(rotated);
    });

  it("is read as any other once the binding does not set granted any more, and no grant is missing then", async () => {
    const { both, value } = await newOwnReader();
    await both.grant();
    await both.reader.bind("harbor-s3", both.spec());
    await both.untilHeld(value);
    await both.reader.rebind("harbor-s3", both.spec({ secret: { name: "bucket" } }));
    await both.withdraw();
    await both.untilHeld(await both.rotate());
    const { status } = await both.reader.until("harbor-s3", "Synced");
    assert.equal(status.copiedSources, undefined);
  });
});

describe("a user who may write bindings and may not get the Secret", () => {
  const RBAC = "rbac.authorization.k8s.io";
  const AUTHOR = "alice";

  /** The user may write bindings with the account inlay, and get no Secret. */
  async function author({ reader }: Neighbours): Promise<Api> {
    const user = new Api(controlPlane(), AUTHOR);
    const subjects = [{ kind: "User", name: AUTHOR, apiGroup: RBAC }];
    const rules = [
      { apiGroups: [""], resources: ["serviceaccounts"], resourceNames: ["inlay"], verbs: ["impersonate"] },
    ];
    await reader.api.create(reader.path(`${RBAC}/v1`, "roles"), { metadata: { name: "acts" }, rules });
    for (const [kind, name] of [
      ["ClusterRole", "inlay-edit"],
      ["Role", "acts"],
    ]) {
      const roleRef = { apiGroup: RBAC, kind, name };
      await reader.api.create(reader.path(`${RBAC}/v1`, "rolebindings"), { metadata: { name }, roleRef, subjects });
    }
    return user;
  }
  const binding = (spec: object, labels: object = {}) => ({
    apiVersion: "inlay.dev/v1alpha1",
    kind: "SecretBinding",
    metadata: { name: "harbor-s3", labels },
    spec,
  });
  const bindings = ({ reader }: Neighbours) => reader.path("inlay.dev/v1alpha1", "secretbindings");

  it("uses a Secret that a grant of the namespace permits, and may not remove granted", async () => {
    const { both, value } = await newOwnReader();
    const alice = await author(both);
    await eventually(() => alice.create(bindings(both), binding(both.spec())));
    await both.reader.until("harbor-s3", "NotGranted");
    await both.grant();
    await both.untilHeld(value);
    const denial = new RegExp(`${AUTHOR} may not get secrets "bucket"`);
    const ungranted = { spec: both.spec({ secret: { name: "bucket" } }) };
    await assert.rejects(alice.merge(both.reader.bindingPath("harbor-s3"), ungranted), denial);
    const other = binding(both.spec({ secret: { name: "bucket" } }));
    await assert.rejects(alice.create(bindings(both), { ...other, metadata: { name: "second" } }), denial);
  });

  it("gains nothing by the label of a composition with a grant, because Inlay computes the bindings of a composition", async () => {
    const { both } = await newOwnReader();
    const alice = await author(both);
    await both.grant("harbors", { from: [{ composition: "harbors" }] });
    const labels = { "inlay.dev/composition": "harbors" };
    await eventually(() => alice.create(bindings(both), binding(both.spec(), labels)));
    await staysOut(both);
  });

  it("gains nothing by that label in another namespace", async () => {
    const { both } = await newNeighbours();
    const alice = await author(both);
    await both.grant("harbors", { from: [{ composition: "harbors" }] });
    const labels = { "inlay.dev/composition": "harbors" };
    await eventually(() => alice.create(bindings(both), binding(both.spec(), labels)));
    await staysOut(both);
  });
});
