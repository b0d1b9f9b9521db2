/** BindingCompositions from their claims to the written values, on the API server: create, change, repair, show, delete. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { inlay } from "../controller/cli.ts";
import {
  ACCESS_KEY_BASE,
  compose,
  composedIn,
  composedNames,
  compositionPath,
  HARBOR_CLAIMS,
  installCompositions,
  READS_SECRETS,
  removeCompositions,
  TO_CLAIM,
  untilComposition,
} from "../controller/compositions.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

const anything = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
const CLAIMS = { group: "claims.inlay.dev", spec: anything };
const STATUS_CLAIMS: Kind = { ...CLAIMS, kind: "StatusClaim", plural: "statusclaims", status: anything };
/** Each write of the status increments its generation. */
const PLAIN_CLAIMS: Kind = { ...CLAIMS, kind: "PlainClaim", plural: "plainclaims", plainStatus: anything };

const usual = { bindings: [{ name: "s3", base: ACCESS_KEY_BASE, patches: [TO_CLAIM] }] };

/** A namespace with the Secret `bucket` and a HarborCluster for each name. */
async function newTeam(...names: string[]): Promise<{ team: TestNamespace; accessKey: string }> {
  const team = await createNamespace();
  const accessKey = secretText("access");
  await team.secret("bucket", { accessKeyID: accessKey });
  for (const name of names) await team.harbor(name);
  return { team, accessKey };
}

const claimEvents = async (team: TestNamespace, reason: string) =>
  (await team.events("harbor")).filter((each) => each.reason === reason);

describe("a composition", () => {
  before(() =>
    installCompositions([...HARBOR_CLAIMS, READS_SECRETS, { ...mayWrite(STATUS_CLAIMS), resources: ["*"] }]),
  );
  after(() => removeCompositions());

  it("creates a binding for every claim, which the claim owns, follows rotations, and deletes it with the claim", async () => {
    const { team, accessKey } = await newTeam("harbor", "second");
    await compose(team, "harbor", usual);
    const { status } = await untilComposition(team, "harbor", "Ready");
    assert.deepEqual([status.claims, status.bindings, status.readyBindings, status.problems], [2, 2, 2, []]);
    assert.deepEqual(await composedNames(team), ["harbor-s3", "second-s3"]);
    for (const name of ["harbor", "second"]) assert.equal((await team.s3(name)).accesskey, accessKey);
    const [{ metadata }] = (await composedIn(team)) as [AnyObject];
    const { uid } = (await team.api.get(team.harborPath())).metadata;
    assert.deepEqual(
      metadata.ownerReferences.map((each: AnyObject) => [each.kind, each.uid]),
      [["HarborCluster", uid]],
    );
    const next = secretText("access");
    await team.secret("bucket", { accessKeyID: next });
    await eventually(async () => assert.equal((await team.s3()).accesskey, next));
    await team.harbor("third");
    await team.until("third-s3", "Synced");
    await team.api.delete(team.harborPath());
    await eventually(async () => assert.deepEqual(await composedNames(team), ["second-s3", "third-s3"]));
  });

  it("deletes the bindings of removed entries and keeps the names of others, as inlay diff predicts", async () => {
    const { team } = await newTeam("harbor");
    const [s3] = usual.bindings;
    const [target] = ACCESS_KEY_BASE.spec.targets as [AnyObject];
    const fields = [{ path: "spec.storage.spec.s3.rootdirectory", from: { source: "bucket", key: "accessKeyID" } }];
    const base = {
      spec: { ...ACCESS_KEY_BASE.spec, defaults: { onRelease: "Remove" }, targets: [{ ...target, fields }] },
    };
    const { apiVersion, kind, metadata, spec } = await compose(team, "harbor", {
      bindings: [s3, { name: "gone", base, patches: [TO_CLAIM] }],
    });
    await untilComposition(team, "harbor", "Ready");
    assert.deepEqual(await composedNames(team), ["harbor-gone", "harbor-s3"]);
    const rename = { fromFieldPath: "metadata.name", toFieldPath: "metadata.name" };
    const bindings = [{ ...s3, patches: [TO_CLAIM, rename] }];
    const changed = { apiVersion, kind, metadata: { name: metadata.name }, spec: { ...spec, bindings } };
    const folder = await mkdtemp(join(tmpdir(), "inlay-diff-"));
    const predict = async (object: AnyObject) => {
      const file = join(folder, "composition.json");
      await writeFile(file, JSON.stringify(object));
      const said = await inlay(controlPlane().kubeconfigFile, "diff", "-f", file, "-o", "json");
      assert.equal(said.stderr, "");
      const { bindings: found } = JSON.parse(said.stdout);
      const changes = found.map(({ binding, own, targets }: AnyObject) => [
        binding.split("/")[1],
        own.change,
        ...targets.flatMap((each: AnyObject) => each.fields.map(({ path, change }: AnyObject) => `${path} ${change}`)),
      ]);
      return changes.sort();
    };
    try {
      const deleted = ["harbor-gone", "delete", "spec.storage.spec.s3.rootdirectory removed"];
      // Its annotation lists the patched fields.
      assert.deepEqual(await predict(changed), [deleted, ["harbor-s3", "update"]]);
      // A claim that is no longer selected.
      const none = { ...spec.for, namespaceSelector: { names: ["other"] } };
      assert.deepEqual(await predict({ ...changed, spec: { ...spec, for: none } }), [deleted, ["harbor-s3", "delete"]]);
      assert.deepEqual(await predict({ ...changed, spec: { ...changed.spec, suspend: true } }), []);
      await team.api.merge(compositionPath(team, "harbor"), { spec: { bindings } });
      await eventually(async () => assert.deepEqual(await composedNames(team), ["harbor-s3"]));
      await untilComposition(team, "harbor", "Ready");
      assert.equal((await team.s3()).rootdirectory, undefined);
      assert.deepEqual(await predict(changed), [["harbor-s3", "none"]]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("selects claims by wildcards in the values of annotations", async () => {
    const { team } = await newTeam("harbor", "second", "third");
    const annotate = (name: string, source: string) =>
      team.api.merge(team.harborPath(name), { metadata: { annotations: { "example.com/source": source } } });
    await annotate("harbor", "bucket-1");
    await annotate("second", "other");
    const { apiVersion, kind } = ACCESS_KEY_BASE.spec.targets[0] as AnyObject;
    const selector = { annotations: { "example.com/source": "bucket-*" } };
    const namespaceSelector = { names: [team.namespace] };
    await compose(team, "harbor", { ...usual, for: { apiVersion, kind, selector, namespaceSelector } });
    await untilComposition(team, "harbor", "Ready");
    assert.deepEqual(await composedNames(team), ["harbor-s3"]);
    await annotate("second", "bucket-2");
    await annotate("harbor", "other");
    await eventually(async () => assert.deepEqual(await composedNames(team), ["second-s3"]));
  });

  it("repairs a binding that a user edits or deletes", async () => {
    const { team } = await newTeam("harbor");
    await compose(team, "harbor", usual);
    await untilComposition(team, "harbor", "Ready");
    const [before] = (await composedIn(team)) as [AnyObject];
    await team.rebind("harbor-s3", { suspend: true, sources: [{ name: "bucket", secret: { name: "other" } }] });
    await eventually(async () => assert.deepEqual((await team.binding("harbor-s3")).spec, before.spec));
    await team.api.merge(team.bindingPath("harbor-s3"), { metadata: { labels: null, annotations: null } });
    const marksOf = ({ metadata: { labels, annotations } }: AnyObject) => [labels, annotations];
    await eventually(async () => assert.deepEqual(marksOf(await team.binding("harbor-s3")), marksOf(before)));
    await team.api.delete(team.bindingPath("harbor-s3"));
    await eventually(async () => {
      const { metadata, spec } = await team.binding("harbor-s3");
      assert.notEqual(metadata.uid, before.metadata.uid);
      assert.deepEqual(spec, before.spec);
    });
    await untilComposition(team, "harbor", "Ready");
  });

  it("changes its bindings when it or a claim changes, and does not change them when a field is missing", async () => {
    const { team } = await newTeam("harbor");
    await team.api.merge(team.harborPath(), { metadata: { annotations: { "example.com/source": "bucket" } } });
    const source = {
      fromFieldPath: "metadata.annotations[example.com/source]",
      toFieldPath: "metadata.annotations[example.com/from]",
      transforms: [{ type: "string", string: { type: "Format", fmt: "from-%s" } }],
    };
    await compose(team, "harbor", {
      bindings: [{ name: "s3", base: ACCESS_KEY_BASE, patches: [TO_CLAIM, source] }],
    });
    await untilComposition(team, "harbor", "Ready");
    const from = async () => (await team.binding("harbor-s3")).metadata.annotations["example.com/from"];
    assert.equal(await from(), "from-bucket");
    await team.api.merge(team.harborPath(), { metadata: { annotations: { "example.com/source": "other" } } });
    await eventually(async () => assert.equal(await from(), "from-other"));
    await team.api.merge(team.harborPath(), { metadata: { annotations: { "example.com/source": null } } });
    const { status } = await untilComposition(team, "harbor", "FieldNotFound");
    assert.equal(await from(), "from-other");
    assert.deepEqual(
      status.problems.map(({ claim, place, reason }: AnyObject) => [claim, place, reason]),
      [[`${team.namespace}/harbor`, "bindings[s3].patches[1]", "FieldNotFound"]],
    );
    await eventually(async () => assert.equal((await claimEvents(team, "FieldNotFound")).length, 1));
    const renamed = [{ name: "storage", base: ACCESS_KEY_BASE, patches: [TO_CLAIM] }];
    await team.api.merge(compositionPath(team, "harbor"), { spec: { bindings: renamed } });
    await eventually(async () => assert.deepEqual(await composedNames(team), ["harbor-storage"]));
    await untilComposition(team, "harbor", "Ready");
  });

  it("shows in a claim the status of its bindings", async () => {
    const { team } = await newTeam("harbor");
    const ready = {
      type: "ToCompositeFieldPath",
      fromFieldPath: "status.conditions[type=Ready].reason",
      toFieldPath: "metadata.annotations[example.com/secret]",
    };
    await compose(team, "harbor", {
      bindings: [{ name: "s3", base: ACCESS_KEY_BASE, patches: [TO_CLAIM, ready] }],
    });
    const shown = async () => (await team.api.get(team.harborPath())).metadata.annotations?.["example.com/secret"];
    await eventually(async () => assert.equal(await shown(), "Synced"));
    await team.api.delete(`${team.path("v1", "secrets")}/bucket`);
    await eventually(async () => assert.equal(await shown(), "SourceNotFound"));
    // What another client's PUT removes is written again.
    await team.api.merge(team.harborPath(), { metadata: { annotations: { "example.com/secret": null } } });
    await eventually(async () => assert.equal(await shown(), "SourceNotFound"));
  });

  for (const [what, kind] of [
    ["the status subresource", STATUS_CLAIMS],
    ["a status that is no subresource", PLAIN_CLAIMS],
  ] as const)
    it(`writes ${what} of a claim, and then nothing more`, async () => {
      const { team } = await newTeam("harbor");
      await installKind(team.api, kind);
      await createObject(team.api, kind, "shop", { cluster: "harbor" }, team.namespace);
      const path = objectPath(kind, team.namespace, "shop");
      const cluster = { fromFieldPath: "spec.cluster", toFieldPath: "spec.targets[0].name" };
      const shown = {
        type: "ToCompositeFieldPath",
        fromFieldPath: "status.conditions[type=Ready].status",
        toFieldPath: "status.binding.ready",
      };
      await compose(team, "claims", {
        for: { apiVersion: apiVersionOf(kind), kind: kind.kind, namespaceSelector: { names: [team.namespace] } },
        bindings: [{ name: "s3", base: ACCESS_KEY_BASE, patches: [cluster, shown] }],
      });
      await eventually(async () => assert.equal((await team.api.get(path)).status?.binding?.ready, "True"));
      await untilComposition(team, "claims", "Ready");
      const requests = await team.requestsDuring(async () => {
        await team.api.merge(path, { metadata: { labels: { touched: "yes" } } });
      });
      assert.deepEqual(
        requests.filter(({ verb }) => verb === "patch" || verb === "update"),
        [],
      );
      await team.api.delete(path);
      await eventually(async () => assert.deepEqual(await composedNames(team), []));
      assert.equal(await team.api.find(path), undefined);
    });

  it("deletes its bindings when it is deleted, or leaves them", async () => {
    for (const deletionPolicy of ["Delete", "Orphan"] as const) {
      const { team } = await newTeam("harbor");
      await compose(team, "harbor", { ...usual, deletionPolicy });
      await untilComposition(team, "harbor", "Ready");
      await team.api.delete(compositionPath(team, "harbor"));
      await team.untilGone(compositionPath(team, "harbor"));
      assert.deepEqual(await composedNames(team), deletionPolicy === "Delete" ? [] : ["harbor-s3"]);
    }
  });

  it("is deleted with the objects that its bindings created only after an annotation, or with Orphan", async () => {
    const { team } = await newTeam("harbor");
    const verbs = ["get", "list", "watch", "create", "patch", "delete"];
    await team.grant([{ apiGroups: [""], resources: ["configmaps"], verbs }], { role: "creator" });
    const made = {
      apiVersion: "v1",
      kind: "ConfigMap",
      name: "made",
      create: { manifest: { data: { a: "b" } } },
      fields: [],
    };
    const base = { spec: { ...ACCESS_KEY_BASE.spec, targets: [made] } };
    await compose(team, "harbor", { ...usual, bindings: [{ name: "s3", base, patches: [] }] });
    await untilComposition(team, "harbor", "Ready");
    const path = compositionPath(team, "harbor");
    const said =
      /Inlay would delete its 1 bindings and the objects that they created; to keep all of them, set spec.deletionPolicy/;
    await assert.rejects(team.api.delete(path), said);
    await team.api.dryRun.merge(path, { spec: { deletionPolicy: "Orphan" } });
    await team.api.merge(path, { metadata: { annotations: { "inlay.dev/delete-copies": "true" } } });
    await team.api.delete(path);
    await team.untilGone(path);
    assert.equal(await team.api.find(`${team.path("v1", "configmaps")}/made`), undefined);
  });

  it("changes nothing while it is suspended or not accepted", async () => {
    const { team } = await newTeam("harbor");
    await compose(team, "harbor", usual);
    await untilComposition(team, "harbor", "Ready");
    const broken = [
      { name: "s3", base: ACCESS_KEY_BASE, patches: [{ ...TO_CLAIM, type: "FromEnvironmentFieldPath" }] },
    ];
    for (const [change, reason] of [
      [{ suspend: true }, "Suspended"],
      [{ suspend: false, bindings: broken }, "InvalidComposition"],
    ] as const) {
      await team.api.merge(compositionPath(team, "harbor"), { spec: change });
      await untilComposition(team, "harbor", reason);
      await team.harbor(reason.toLowerCase());
      await team.barrier();
      assert.deepEqual(await composedNames(team), ["harbor-s3"]);
    }
    await team.api.merge(compositionPath(team, "harbor"), { spec: { bindings: usual.bindings } });
    await eventually(async () =>
      assert.deepEqual(await composedNames(team), ["harbor-s3", "invalidcomposition-s3", "suspended-s3"]),
    );
  });
});
