/** What somebody gains who may write bindings, and neither read Secrets nor change workloads, where Reloader's annotations are understood: nothing. */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import type { AuditedRequest } from "../controller/audit.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { foundIn, secretText } from "../controller/leak-detector.ts";
import { installReloader, RELOADER, reloading, removeReloader, untilMade } from "../controller/reloader.ts";
import { loggedUntilNow } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { createNamespace, TestNamespace } from "../controller/test-namespace.ts";
import { deployment, Workloads } from "../controller/workloads.ts";

const ACCOUNT = "inlay-reloader";
const NAME = "reloader-deployment-core";
const LABELS = { "inlay.dev/generated-for": "reloader" };
const sources = [{ name: "secret-theirs", optional: true, secret: { name: "theirs" } }];
/** Copies the Secret to where everybody reads it. */
const copies = [
  {
    apiVersion: "v1",
    kind: "ConfigMap",
    name: "copy",
    fields: [{ path: "data.token", from: { source: "secret-theirs", key: "token" } }],
  },
];
const restarts = { targets: [{ kind: "Deployment", name: "victim" }] };

/** A team with a Secret that is not for bindings, a workload that is not either, and one that is annotated. */
async function newVictim(): Promise<{ team: TestNamespace; shop: Workloads }> {
  const team = await createNamespace({ account: false, rules: [], controller: false });
  const shop = new Workloads(team);
  await rotate(team);
  await team.secret("own", { token: secretText("token") });
  await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "copy" }, data: { token: "none" } });
  await shop.deploy({ victim: {} });
  const core = deployment("core", { envFrom: ["own"] }) as AnyObject;
  core.metadata.annotations = { "reloader.stakater.com/auto": "true" };
  await team.api.create(team.path("apps/v1", "deployments"), core);
  await shop.run(["core"]);
  await untilMade(team, [NAME]);
  return { team, shop };
}

const rotate = (team: TestNamespace) => team.secret("theirs", { token: secretText("theirs") });

function forge(team: TestNamespace, name: string, spec: object, metadata: object = {}): Promise<AnyObject> {
  const object = { apiVersion: "inlay.dev/v1alpha1", kind: "SecretBinding" };
  return team.api.create(team.path("inlay.dev/v1alpha1", "secretbindings"), {
    ...object,
    metadata: { name, ...metadata },
    spec: { serviceAccountName: ACCOUNT, ...spec },
  });
}

/** Waits until it is said that nothing is done as the account. */
async function refused(team: TestNamespace, name: string): Promise<void> {
  await eventually(async () => {
    const reasons = (await team.binding(name)).status?.conditions.map(({ reason }: AnyObject) => reason);
    assert.match(reasons.join(" "), /Forbidden|ServiceAccountNotFound|ImpersonationForbidden/);
  });
}

describe("who may write bindings, where Reloader's annotations are understood,", function () {
  this.timeout("2m");
  let controller: ControllerProcess;

  before(async () => {
    await installReloader();
    controller = await reloading({ namespaces: ["team-*"] }, { allowSystemNamespaces: ["inlay-system"] });
    await controller.start();
  });
  after(async () => {
    await controller?.stop();
    await removeReloader();
    assert.deepEqual(foundIn(controller.output), []);
  });

  /** What was asked as the account meanwhile. */
  async function asked(team: TestNamespace, act: () => Promise<unknown>): Promise<AuditedRequest[]> {
    const mark = await auditLog().mark();
    await act();
    await loggedUntilNow(team);
    return (await auditLog().since(mark)).filter(
      ({ as, namespace }) => as === RELOADER && namespace === team.namespace,
    );
  }

  /** Nothing of what he wants was read or written, though the Secret changes. */
  async function gainsNothing(
    { team, shop }: { team: TestNamespace; shop: Workloads },
    act: () => Promise<unknown>,
  ): Promise<void> {
    const requests = await asked(team, async () => {
      await act();
      await rotate(team);
      // What comes after it has gone through.
      await team.secret("own", { token: secretText("token") });
      await eventually(async () => assert.equal((await shop.restarts())["core"], 1), 30_000);
    });
    assert.deepEqual(
      requests.filter(({ name, verb }) => name === "theirs" || (verb === "patch" && name !== "core")),
      [],
    );
    assert.equal((await team.api.get(`${team.path("v1", "configmaps")}/copy`)).data.token, "none");
    assert.equal((await shop.restarts())["victim"], 0);
  }

  it("has none of his own acted for as the account of the installation: it is that of his namespace, which has to be there", async () => {
    const victim = await newVictim();
    const { team } = victim;
    await gainsNothing(victim, async () => {
      await forge(team, "copies", { sources, targets: copies });
      await forge(team, "restarts", { sources, rollout: restarts });
      for (const name of ["copies", "restarts"]) await refused(team, name);
    });
  });

  it("has none acted for as it where it stands either, though that namespace was opened", async () => {
    const team = new TestNamespace("inlay-system");
    await rotate(team);
    try {
      const requests = await asked(team, async () => {
        await forge(team, "copies", { sources, targets: copies });
        const { status } = await team.until("copies", "ImpersonationForbidden");
        assert.match(status.conditions[0].message, /reserved for the annotations of Reloader; .*another account/);
        await rotate(team);
        await forge(team, "restarts", { sources, rollout: restarts });
        await team.until("restarts", "ImpersonationForbidden");
      });
      assert.deepEqual(requests, []);
    } finally {
      for (const name of ["copies", "restarts"]) await team.unbind(name);
      await team.api.delete(`${team.path("v1", "secrets")}/theirs`);
    }
  });

  it("gains nothing by an account of that name that he makes himself: nobody opened it", async () => {
    const victim = await newVictim();
    const { team } = victim;
    await team.createAccount(ACCOUNT);
    await gainsNothing(victim, async () => {
      await forge(team, "copies", { sources, targets: copies });
      await refused(team, "copies");
    });
  });

  it("has one that says it was made of annotations deleted, before anything is done for it", async () => {
    const victim = await newVictim();
    const { team } = victim;
    const core = (await team.api.get(victim.shop.path("core"))).metadata;
    const owner = { apiVersion: "apps/v1", kind: "Deployment", name: "core", uid: core.uid };
    await gainsNothing(victim, async () => {
      for (const name of ["copies", "reloader-2-deployment-core", "reloader-deployment-victim"]) {
        const metadata = { labels: LABELS, ownerReferences: [owner] };
        await forge(team, name, { sources, targets: copies, rollout: restarts }, metadata);
        await team.untilGone(team.bindingPath(name));
      }
    });
  });

  it("has what he changes of one that was made put back, before anything is done for it", async () => {
    const victim = await newVictim();
    const { team } = victim;
    const before = await team.api.get(team.bindingPath(NAME));
    await gainsNothing(victim, async () => {
      for (const spec of [
        { sources },
        { sources, targets: copies },
        { rollout: { ...before.spec.rollout, ...restarts } },
      ]) {
        await team.rebind(NAME, spec);
        await eventually(async () => assert.deepEqual((await team.api.get(team.bindingPath(NAME))).spec, before.spec));
      }
    });
  });

  it("gains nothing in another namespace by the very binding that was made in one", async () => {
    const [victim, { team: origin }] = [await newVictim(), await newVictim()];
    const { team } = victim;
    const { metadata, spec } = await origin.api.get(origin.bindingPath(NAME));
    await gainsNothing(victim, async () => {
      const { labels, ownerReferences } = metadata;
      await forge(team, "reloader-deployment-other", { ...spec, sources }, { labels, ownerReferences });
      await team.untilGone(team.bindingPath("reloader-deployment-other"));
    });
  });

  it("may not write one that names what he may not read, though the account is his to act as", async () => {
    const { team } = await newVictim();
    const tenant = `tenant-${team.namespace}`;
    const rbac = "rbac.authorization.k8s.io";
    await team.api.create(team.path(`${rbac}/v1`, "roles"), {
      metadata: { name: tenant },
      rules: [{ apiGroups: ["inlay.dev"], resources: ["secretbindings"], verbs: ["create", "update", "patch", "get"] }],
    });
    await team.api.create(team.path(`${rbac}/v1`, "rolebindings"), {
      metadata: { name: tenant },
      roleRef: { apiGroup: rbac, kind: "Role", name: tenant },
      subjects: [{ kind: "User", name: tenant, apiGroup: rbac }],
    });
    const patch = () => team.api.as(tenant).merge(team.bindingPath(NAME), { spec: { sources } });
    await eventually(() => assert.rejects(patch, /may not impersonate serviceaccounts "inlay-reloader"/));
  });
});
