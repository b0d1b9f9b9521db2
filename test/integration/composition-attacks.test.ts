/** Users who may write claims, bindings or compositions, and not read the Secrets that compositions read, gain nothing. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import {
  ACCESS_KEY_BASE,
  bindCompositionsIn,
  COMPOSITIONS,
  compose,
  compositionPath,
  installCompositions,
  removeCompositions,
  TO_CLAIM,
  unbindCompositionsIn,
  untilComposition,
} from "../controller/compositions.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { Neighbours } from "../controller/neighbours.ts";
import { requestsFor } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { createNamespace, harborTarget, type TestNamespace } from "../controller/test-namespace.ts";

const SOURCE = "example.com/source";
const NAMESPACE = "example.com/namespace";
const TEXT = "example.com/text";

const [accessKeyTarget] = ACCESS_KEY_BASE.spec.targets;
/** A patch by which the claim names the Secret. */
const nameTo = (toFieldPath: string) => ({ fromFieldPath: `metadata.annotations[${SOURCE}]`, toFieldPath });
const SOURCE_NAME = nameTo("spec.sources[0].secret.name");
const entry = (name: string, base: object = ACCESS_KEY_BASE, ...patches: object[]) => ({
  name,
  base,
  patches: [TO_CLAIM, ...patches],
});
const named = { bindings: [entry("s3", ACCESS_KEY_BASE, SOURCE_NAME)] };
const usual = { bindings: [entry("s3")] };
/** A base with a source that is `granted`. */
const GRANTED_BASE = {
  spec: { ...ACCESS_KEY_BASE.spec, sources: [{ name: "bucket", secret: { name: "bucket", granted: true } }] },
};
const granted = { bindings: [entry("s3", GRANTED_BASE)] };

interface Victim {
  team: TestNamespace;
  both: Neighbours;
  bucket: string;
  theirs: string;
}

/** A namespace with the Secrets `bucket` and `theirs`, and a HarborCluster `harbor`. */
async function newVictim(): Promise<Victim> {
  const team = await createNamespace();
  const both = new Neighbours(team, team);
  const [bucket, theirs] = [await both.rotate(), await both.rotate("theirs")];
  await team.harbor();
  return { team, both, bucket, theirs };
}

const annotate = (team: TestNamespace, annotations: Record<string, string | null>, name = "harbor") =>
  team.api.merge(team.harborPath(name), { metadata: { annotations } });

const grantTo = ({ both, team }: Victim, composition: string, secret = "bucket") =>
  both.grant(`${composition}-${secret}`, {
    from: [{ composition: `${team.namespace}-${composition}` }],
    to: [{ kind: "Secret", name: secret }],
  });

/** Limits the claims to one HarborCluster of the namespace. */
const only = ({ namespace }: TestNamespace, name: string) => ({
  for: {
    apiVersion: "goharbor.io/v1beta1",
    kind: "HarborCluster",
    selector: { names: [name] },
    namespaceSelector: { names: [namespace] },
  },
});

const bindingsIn = async (team: TestNamespace): Promise<AnyObject[]> =>
  (await team.api.get(team.path("inlay.dev/v1alpha1", "secretbindings"))).items.filter(
    ({ metadata }: AnyObject) => !metadata.name.startsWith("pulse"),
  );
const namesIn = async (team: TestNamespace) => (await bindingsIn(team)).map(({ metadata }) => metadata.name).sort();

function forge(team: TestNamespace, metadata: AnyObject, spec: object): Promise<AnyObject> {
  const { name, labels, annotations, ownerReferences } = metadata;
  return team.api.create(team.path("inlay.dev/v1alpha1", "secretbindings"), {
    apiVersion: "inlay.dev/v1alpha1",
    kind: "SecretBinding",
    metadata: { name, labels, annotations, ownerReferences },
    spec,
  });
}

/** The marks of the binding that a composition creates for the claim `harbor` of a namespace. */
async function marksOf(team: TestNamespace, composition: string, binding = "s3"): Promise<AnyObject> {
  const { metadata } = await team.api.get(team.harborPath());
  return {
    labels: {
      "inlay.dev/composition": `${team.namespace}-${composition}`,
      "inlay.dev/composition-binding": binding,
      "inlay.dev/claim-uid": metadata.uid,
    },
    annotations: { "inlay.dev/claim": `${team.namespace}/harbor` },
    ownerReferences: [{ apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster", name: "harbor", uid: metadata.uid }],
  };
}

/** Waits until the claim `harbor`, or another one, has this problem and no other. */
async function untilProblem(team: TestNamespace, composition: string, reason: string, claim = "harbor") {
  const { status } = await untilComposition(team, composition, reason);
  assert.deepEqual(
    status.problems.map((each: AnyObject) => [each.claim, each.reason]),
    [[`${team.namespace}/${claim}`, reason]],
  );
  return status.problems[0] as AnyObject;
}

/** The requests as the binding's account for a Secret by its name. */
const readsOf = async (team: TestNamespace, mark: number, secret: string) =>
  (await requestsFor(team, mark)).filter(({ resource, name }) => resource === "secrets" && name === secret);

describe("with compositions,", function () {
  this.timeout("2m");
  before(() => installCompositions());
  after(() => removeCompositions());

  describe("the author of a claim", () => {
    for (const path of [
      "spec.sources[0].secret.name",
      "spec.sources[name=bucket].secret.name",
      "spec.sources[*].secret.name",
    ])
      it(`names a Secret by ${path} without a grant for the composition: Inlay does not read it`, async () => {
        const victim = await newVictim();
        const { team, both } = victim;
        await annotate(team, { [SOURCE]: "theirs" });
        await grantTo(victim, "harbor", "bucket");
        await both.grant("all", {
          from: [{ namespaceSelector: { names: ["*"] } }],
          to: [{ kind: "Secret", name: "theirs" }],
        });
        const mark = await auditLog().mark();
        await compose(team, "harbor", { bindings: [entry("s3", ACCESS_KEY_BASE, nameTo(path))] });
        const { spec } = await team.until("harbor-s3", "NotGranted");
        assert.deepEqual(
          spec.sources.map(({ secret }: AnyObject) => secret),
          [{ name: "theirs", granted: true }],
        );
        await team.barrier();
        assert.deepEqual(await readsOf(team, mark, "theirs"), []);
        assert.equal((await team.s3()).accesskey, undefined);
      });

    it("changes the name to a Secret that is not granted while Inlay is stopped, in the claim and in the binding: Inlay never reads it", async () => {
      const victim = await newVictim();
      const { team, both, bucket, theirs } = victim;
      await annotate(team, { [SOURCE]: "bucket" });
      await compose(team, "harbor", named);
      await grantTo(victim, "harbor");
      await both.untilHeld(bucket);
      const mark = await auditLog().mark();
      team.controller.signal("SIGSTOP");
      try {
        await annotate(team, { [SOURCE]: "theirs" });
        const sources = [{ name: "bucket", secret: { name: "theirs", granted: true } }];
        await team.rebind("harbor-s3", { sources });
        await both.rotate();
        await both.rotate("theirs");
      } finally {
        team.controller.signal("SIGCONT");
      }
      await team.until("harbor-s3", "NotGranted");
      await team.barrier();
      assert.deepEqual(await readsOf(team, mark, "theirs"), []);
      assert.equal((await team.s3()).accesskey, bucket);
      await annotate(team, { [SOURCE]: "bucket" });
      await team.until("harbor-s3", "Synced");
      assert.notEqual((await team.s3()).accesskey, theirs);
    });

    it("changes the name back and forth: Inlay never reads the Secret that is not granted", async () => {
      const victim = await newVictim();
      const { team, both, bucket } = victim;
      await annotate(team, { [SOURCE]: "bucket" });
      await grantTo(victim, "harbor");
      await compose(team, "harbor", named);
      await both.untilHeld(bucket);
      const mark = await auditLog().mark();
      for (let round = 0; round < 20; round++) {
        await annotate(team, { [SOURCE]: round % 2 === 0 ? "theirs" : "bucket" });
        await both.rotate(round % 2 === 0 ? "bucket" : "theirs");
      }
      const last = await both.rotate();
      await both.untilHeld(last);
      assert.deepEqual(await readsOf(team, mark, "theirs"), []);
    });

    it("names another namespace as source or target: OutOfReach, and no binding is created", async () => {
      const { team } = await newVictim();
      const other = await createNamespace();
      for (const toFieldPath of ["spec.sources[0].secret.namespace", "spec.targets[0].namespace"]) {
        const name = toFieldPath.includes("sources") ? "reads" : "writes";
        await annotate(team, { [NAMESPACE]: other.namespace });
        const patch = { fromFieldPath: `metadata.annotations[${NAMESPACE}]`, toFieldPath };
        await compose(team, name, { bindings: [entry(name, ACCESS_KEY_BASE, patch)] });
        await untilProblem(team, name, "OutOfReach");
        assert.deepEqual(await namesIn(team), []);
        assert.deepEqual(await namesIn(other), []);
        await annotate(team, { [NAMESPACE]: team.namespace });
        await untilComposition(team, name, "Ready");
        await team.api.delete(compositionPath(team, name));
        await team.untilGone(compositionPath(team, name));
      }
    });

    it("names another namespace with reach: Cluster: a grant of the author's own namespace does not permit it", async () => {
      const victim = await newVictim();
      const { team } = victim;
      const owner = await newVictim();
      const mayRead = [{ apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "watch"] }];
      await team.grant(mayRead, { role: `${team.namespace}-reads`, namespace: owner.team.namespace });
      await grantTo(victim, "harbor");
      await annotate(team, { [NAMESPACE]: owner.team.namespace });
      const toFieldPath = "spec.sources[0].secret.namespace";
      const patch = { fromFieldPath: `metadata.annotations[${NAMESPACE}]`, toFieldPath };
      const mark = await auditLog().mark();
      await compose(team, "harbor", { reach: "Cluster", bindings: [entry("s3", ACCESS_KEY_BASE, patch)] });
      await team.until("harbor-s3", "NotGranted");
      await team.barrier();
      const requests = await requestsFor(team, mark);
      assert.deepEqual(
        requests.filter(({ namespace, resource }) => namespace === owner.team.namespace && resource === "secrets"),
        [],
      );
      const from = [{ composition: `${team.namespace}-harbor` }];
      await owner.both.grant("bucket", { from });
      await victim.both.untilHeld(owner.bucket);
    });

    it("writes an expression in braces for a template: InvalidValue, and no binding is created", async () => {
      const { team } = await newVictim();
      await team.secret("bucket", { secretKey: secretText("secret") });
      const target = harborTarget({
        accesskey: { from: { source: "bucket", key: "secretKey" } },
        region: { template: "none" },
      });
      const base = { spec: { ...ACCESS_KEY_BASE.spec, targets: [target] } };
      const patch = {
        fromFieldPath: `metadata.annotations[${TEXT}]`,
        toFieldPath: "spec.targets[0].fields[1].template",
        transforms: [{ type: "string", string: { type: "Format", fmt: "{%s" } }],
      };
      for (const [number, text] of ["{bucket.secretKey}}", "{{bucket.secretKey}}", "{#if bucket}}a{{/if}}"].entries()) {
        await annotate(team, { [TEXT]: text });
        const composition = `harbor-${number}`;
        await compose(team, composition, { bindings: [entry("s3", base, patch)] });
        const { message } = await untilProblem(team, composition, "InvalidValue");
        assert.ok(!message.includes("secretKey") && !message.includes("#if"), message);
        assert.deepEqual(await namesIn(team), []);
        await team.api.delete(compositionPath(team, composition));
        await team.untilGone(compositionPath(team, composition));
      }
    });

    it("repeats an expression of the composition in the template of another field: InvalidValue, and no binding is created", async () => {
      const { team } = await newVictim();
      const target = harborTarget({ accesskey: { template: "{{bucket.accessKeyID}}" }, region: { template: "none" } });
      const base = { spec: { ...ACCESS_KEY_BASE.spec, targets: [target] } };
      await annotate(team, { [TEXT]: "{{bucket.accessKeyID}}" });
      const patch = {
        fromFieldPath: `metadata.annotations[${TEXT}]`,
        toFieldPath: "spec.targets[0].fields[1].template",
      };
      await compose(team, "harbor", { bindings: [entry("s3", base, patch)] });
      await untilProblem(team, "harbor", "InvalidValue");
      assert.deepEqual(await namesIn(team), []);
    });

    it("sets labels of inlay.dev that a patch copies: the binding does not get them", async () => {
      const { team } = await newVictim();
      const labels = { tier: "prod", "inlay.dev/protects": "yes", "inlay.dev/composition": "another" };
      await team.api.merge(team.harborPath(), { metadata: { labels } });
      await compose(team, "harbor", {
        bindings: [entry("s3", ACCESS_KEY_BASE, { fromFieldPath: "metadata.labels" })],
      });
      const { metadata } = await team.until("harbor-s3", "Synced");
      assert.equal(metadata.labels.tier, "prod");
      assert.equal(metadata.labels["inlay.dev/protects"], undefined);
      assert.equal(metadata.labels["inlay.dev/composition"], `${team.namespace}-harbor`);
    });

    it("gives it a name so that its binding has the name of another claim's: NameTaken, and that binding does not change", async () => {
      const { team } = await newVictim();
      const selector = { names: ["a", "a-b"] };
      await team.harbor("a-b");
      const fields = { regionendpoint: { from: { source: "bucket", key: "accessKeyID" } } };
      const other = { spec: { ...ACCESS_KEY_BASE.spec, targets: [harborTarget(fields)] } };
      const text = { fromFieldPath: `metadata.annotations[${TEXT}]`, toFieldPath: `metadata.annotations[${TEXT}]` };
      const bindings = [entry("c", ACCESS_KEY_BASE, text), entry("b-c", other, text)];
      const { spec } = await compose(team, "harbor", { bindings });
      await team.api.merge(compositionPath(team, "harbor"), { spec: { for: { ...spec.for, selector } } });
      const before = await team.until("a-b-c", "Synced");
      await annotate(team, { [TEXT]: "first" }, "a-b");
      await team.barrier();
      await team.harbor("a");
      await untilProblem(team, "harbor", "NameTaken", "a");
      for (const name of ["a", "a-b"]) await annotate(team, { [TEXT]: "touched" }, name);
      await team.barrier();
      const { metadata, spec: after } = await team.binding("a-b-c");
      assert.deepEqual([metadata.uid, metadata.generation], [before.metadata.uid, before.metadata.generation]);
      assert.equal(metadata.annotations["inlay.dev/claim"], `${team.namespace}/a-b`);
      assert.deepEqual(after, before.spec);
      assert.deepEqual(await namesIn(team), ["a-b-b-c", "a-b-c", "a-c"]);
      await team.api.delete(team.harborPath("a-b"));
      await eventually(async () => {
        assert.equal((await team.binding("a-b-c")).metadata.annotations["inlay.dev/claim"], `${team.namespace}/a`);
      });
    });
  });

  describe("the author of a binding", () => {
    it("forges the marks and the owner of a composed binding: it gets no grant of the composition, and is deleted", async () => {
      const victim = await newVictim();
      const { team, both, bucket } = victim;
      await team.harbor("mine");
      await grantTo(victim, "harbor");
      await compose(team, "harbor", { ...granted, ...only(team, "harbor") });
      await both.untilHeld(bucket);
      const { metadata, spec } = await team.until("harbor-s3", "Synced");
      const targets = [{ ...accessKeyTarget, name: "mine" }];
      for (const [name, marks] of [
        ["forged", {}],
        ["other-binding", { labels: { ...metadata.labels, "inlay.dev/composition-binding": "other" } }],
        ["other-claim", { annotations: { ...metadata.annotations, "inlay.dev/claim": `${team.namespace}/mine` } }],
      ] as const) {
        await forge(team, { ...metadata, ...marks, name }, { ...spec, targets });
        await team.untilGone(team.bindingPath(name));
      }
      await team.barrier();
      assert.equal((await team.s3("mine")).accesskey, undefined);
      const now = await team.until("harbor-s3", "Synced");
      assert.deepEqual([now.metadata.uid, now.spec], [metadata.uid, spec]);
    });

    it("forges them in another namespace before the composition creates its binding: the composed binding is created at its claim", async () => {
      const victim = await newVictim();
      const { team, both, bucket } = victim;
      const mine = await createNamespace();
      await mine.harbor();
      await forge(
        mine,
        // The garbage collector deletes objects whose owner is in another namespace.
        { ...(await marksOf(team, "harbor")), name: "forged", ownerReferences: undefined },
        { ...GRANTED_BASE.spec, targets: [{ ...accessKeyTarget, name: "harbor" }] },
      );
      await grantTo(victim, "harbor");
      await compose(team, "harbor", granted);
      await both.untilHeld(bucket);
      assert.deepEqual(await namesIn(team), ["harbor-s3"]);
      await mine.untilGone(mine.bindingPath("forged"));
      assert.equal((await mine.s3()).accesskey, undefined);
    });

    it("takes the name of a composed binding, with the marks of another claim or none: NameTaken, and Inlay does not change it", async () => {
      const { team } = await newVictim();
      const { spec } = ACCESS_KEY_BASE;
      const own = { ...spec, targets: [{ ...accessKeyTarget, name: "own" }] };
      const others = await marksOf(team, "another");
      for (const [number, marks] of [{}, others].entries()) {
        const { metadata } = await forge(team, { ...marks, name: "harbor-s3" }, own);
        const composition = `harbor-${number}`;
        await compose(team, composition, usual);
        await untilProblem(team, composition, "NameTaken");
        await team.barrier();
        const there = await team.binding("harbor-s3");
        assert.deepEqual([there.metadata.uid, there.metadata.generation], [metadata.uid, metadata.generation]);
        // Inlay recreates it at once as the composed binding.
        await team.api.delete(team.bindingPath("harbor-s3"));
        await untilComposition(team, composition, "Ready");
        await team.api.delete(compositionPath(team, composition));
        await team.untilGone(compositionPath(team, composition));
      }
    });

    it("marks a composed binding as another claim's: the marks are reverted, and the other claim does not change", async () => {
      const { team } = await newVictim();
      await team.harbor("mine");
      await compose(team, "harbor", usual);
      const { metadata } = await team.until("harbor-s3", "Synced");
      const { metadata: mine } = await team.api.get(team.harborPath("mine"));
      await team.api.merge(team.bindingPath("harbor-s3"), {
        metadata: {
          labels: { "inlay.dev/claim-uid": mine.uid },
          annotations: { "inlay.dev/claim": `${team.namespace}/mine` },
        },
      });
      await eventually(async () => {
        const { metadata: now } = await team.binding("harbor-s3");
        assert.deepEqual([now.uid, now.labels, now.annotations], [metadata.uid, metadata.labels, metadata.annotations]);
      });
    });

    it("marks a binding for a claim without a name, or as not ready: the status of the composition does not change", async () => {
      const { team } = await newVictim();
      const mine = await createNamespace();
      await compose(team, "harbor", usual);
      await untilComposition(team, "harbor", "Ready");
      const marks = { ...(await marksOf(team, "harbor")), ownerReferences: undefined };
      const { spec } = GRANTED_BASE;
      await forge(
        mine,
        { ...marks, name: "nameless", annotations: { "inlay.dev/claim": "" } },
        { ...spec, targets: [{ ...accessKeyTarget, name: "harbor" }] },
      );
      await forge(
        mine,
        { name: "label", labels: { "inlay.dev/composition": `${team.namespace}-harbor` } },
        { ...spec, targets: [{ ...accessKeyTarget, name: "harbor" }] },
      );
      for (const name of ["nameless", "label"]) await mine.until(name, "NotGranted");
      // A change of the composition makes Inlay reconcile all claims again.
      await team.api.merge(compositionPath(team, "harbor"), { spec: { deletionPolicy: "Orphan" } });
      const { status } = await untilComposition(team, "harbor", "Ready");
      assert.deepEqual([status.claims, status.bindings, status.readyBindings], [1, 1, 1]);
    });

    it("edits a composed binding of a suspended composition: it can't use a grant for the composition until it is reverted", async () => {
      const victim = await newVictim();
      const { team, both, bucket } = victim;
      await team.harbor("mine");
      await grantTo(victim, "harbor");
      await compose(team, "harbor", { ...granted, ...only(team, "harbor") });
      await both.untilHeld(bucket);
      const { spec } = await team.until("harbor-s3", "Synced");
      await team.api.merge(compositionPath(team, "harbor"), { spec: { suspend: true } });
      await untilComposition(team, "harbor", "Suspended");
      const targets = [{ ...accessKeyTarget, name: "mine" }];
      await team.rebind("harbor-s3", { targets });
      await team.until("harbor-s3", "Unavailable");
      const rotated = await both.rotate();
      await team.barrier();
      assert.deepEqual([(await team.s3("mine")).accesskey, (await team.s3()).accesskey], [undefined, bucket]);
      await team.api.merge(compositionPath(team, "harbor"), { spec: { suspend: false } });
      await both.untilHeld(rotated);
      assert.deepEqual((await team.until("harbor-s3", "Synced")).spec, spec);
      await eventually(async () => assert.equal((await team.s3("mine")).accesskey, undefined));
    });
  });

  describe("the author of a composition", () => {
    it("uses a grant to another composition: NotGranted", async () => {
      const victim = await newVictim();
      const { team, both, bucket } = victim;
      await team.harbor("mine");
      await grantTo(victim, "theirs");
      await compose(team, "theirs", { ...granted, ...only(team, "harbor") });
      await both.untilHeld(bucket);
      await compose(team, "mine", { ...granted, ...only(team, "mine") });
      await team.until("mine-s3", "NotGranted");
      await team.barrier();
      assert.equal((await team.s3("mine")).accesskey, undefined);
    });

    it("may not create or change a composition whose account the author may not impersonate", async () => {
      const { team } = await newVictim();
      const AUTHOR = "alice";
      const RBAC = "rbac.authorization.k8s.io";
      const role = `${team.namespace}-author`;
      const subjects = [{ kind: "User", name: AUTHOR, apiGroup: RBAC }];
      const verbs = ["create", "get", "update", "patch"];
      const clusterRoles = `/apis/${RBAC}/v1/clusterroles`;
      const wide = `/apis/${RBAC}/v1/clusterrolebindings`;
      const inSystem = `/apis/${RBAC}/v1/namespaces/inlay-system`;
      const rules = [{ apiGroups: ["inlay.dev"], resources: ["bindingcompositions"], verbs }];
      await team.api.create(clusterRoles, { metadata: { name: role }, rules });
      const ofAuthor = { metadata: { name: role }, subjects };
      await team.api.create(wide, { ...ofAuthor, roleRef: { apiGroup: RBAC, kind: "ClusterRole", name: role } });
      try {
        const author = new Api(controlPlane(), AUTHOR);
        const refused = /alice may not impersonate serviceaccounts "inlay-compositions" in namespace inlay-system/;
        const isRefused = (write: () => Promise<unknown>, why = refused) =>
          eventually(() => assert.rejects(write, why));
        const by = (api: Api) => ({ api, namespace: team.namespace });
        await isRefused(() => compose(by(author.dryRun), "harbor", usual));
        const serviceAccount = { namespace: "kube-system", name: "admin" };
        const other = /may not impersonate serviceaccounts "admin" in namespace kube-system/;
        await isRefused(() => compose(by(author.dryRun), "harbor", { ...usual, serviceAccount }), other);
        await compose(team, "harbor", usual);
        await untilComposition(team, "harbor", "Ready");
        const path = compositionPath(team, "harbor");
        await isRefused(() => author.merge(path, { spec: { reach: "Cluster" } }));
        await isRefused(() => author.merge(path, { spec: { serviceAccount } }), other);
        await author.merge(path, { metadata: { labels: { reviewed: "yes" } } });
        const impersonates = {
          apiGroups: [""],
          resources: ["serviceaccounts"],
          resourceNames: ["inlay-compositions"],
          verbs: ["impersonate"],
        };
        await team.api.create(`${inSystem}/roles`, { metadata: { name: role }, rules: [impersonates] });
        const roleRef = { apiGroup: RBAC, kind: "Role", name: role };
        await team.api.create(`${inSystem}/rolebindings`, { ...ofAuthor, roleRef });
        await eventually(() => author.merge(path, { spec: { reach: "Cluster" } }));
        await isRefused(() => author.merge(path, { spec: { serviceAccount } }), other);
      } finally {
        for (const plural of ["rolebindings", "roles"]) await team.api.remove(`${inSystem}/${plural}/${role}`);
        await team.api.remove(`${wide}/${role}`);
        await team.api.remove(`${clusterRoles}/${role}`);
      }
    });

    it("lets a claim choose the account, an acknowledgement, a protection or a kind: InvalidComposition, and no binding is created", async () => {
      const { team } = await newVictim();
      await annotate(team, { [TEXT]: "text" });
      for (const [number, toFieldPath] of [
        "spec.serviceAccountName",
        "spec.acknowledge",
        "spec.acknowledge[0]",
        "spec.sources[0].protect",
        "spec.sources[0]",
        "spec.sources",
        "spec",
        "spec.targets[0].kind",
        "spec.targets[*].apiVersion",
        "spec.rollout.targets[0].kind",
        "metadata.ownerReferences",
        "metadata.finalizers",
        "metadata.namespace",
        "status",
      ].entries()) {
        const composition = `harbor-${number}`;
        const patch = { fromFieldPath: `metadata.annotations[${TEXT}]`, toFieldPath };
        await compose(team, composition, { bindings: [entry("s3", ACCESS_KEY_BASE, patch)] });
        const { status } = await untilComposition(team, composition, "InvalidComposition", "Accepted");
        const { message } = status.conditions.find(({ type }: AnyObject) => type === "Accepted");
        assert.match(message, /^bindings\[s3\]\.patches\[1\]\.toFieldPath: /);
      }
      await team.barrier();
      assert.deepEqual(await namesIn(team), []);
    });
  });
});

describe("if the account of a composition has permissions in single namespaces,", function () {
  this.timeout("2m");
  let open: Victim;
  let closed: Victim;

  before(async () => {
    await installCompositions();
    [open, closed] = [await newVictim(), await newVictim()];
    await bindCompositionsIn(open.team);
  });
  after(() => removeCompositions());

  it("the author of a claim in another namespace gets no binding, and Inlay only checks its permissions there", async () => {
    const names = [open.team.namespace, closed.team.namespace];
    const mark = await auditLog().mark();
    await compose(open.team, "both", {
      ...usual,
      for: {
        apiVersion: "goharbor.io/v1beta1",
        kind: "HarborCluster",
        namespaceSelector: { names },
        selector: { names: ["harbor"] },
      },
    });
    await open.team.until("harbor-s3", "Synced");
    await open.team.barrier();
    assert.deepEqual(await namesIn(closed.team), []);
    const asked = (await auditLog().since(mark)).filter(
      ({ as, namespace, code }) => as === COMPOSITIONS && namespace === closed.team.namespace && code < 300,
    );
    assert.deepEqual(asked, []);
    await open.team.api.delete(compositionPath(open.team, "both"));
    await open.team.untilGone(open.team.bindingPath("harbor-s3"));
  });

  it("the account loses its permissions: composed bindings do not change, and change again when it has them back", async () => {
    const { team, both, bucket } = open;
    await annotate(team, { [SOURCE]: "bucket" });
    await grantTo(open, "harbor");
    await compose(team, "harbor", named);
    await both.untilHeld(bucket);
    const before = await team.until("harbor-s3", "Synced");
    await unbindCompositionsIn(team);
    await annotate(team, { [SOURCE]: "theirs" });
    await team.barrier();
    await team.api.merge(compositionPath(team, "harbor"), { spec: only(team, "none") });
    await team.barrier();
    const after = await team.binding("harbor-s3");
    assert.deepEqual([after.metadata.uid, after.spec], [before.metadata.uid, before.spec]);
    await bindCompositionsIn(team);
    await team.untilGone(team.bindingPath("harbor-s3"), 60_000);
  });
});
