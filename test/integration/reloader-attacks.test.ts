/**
 * Shows that users who may write bindings, but neither read Secrets nor change workloads, gain nothing by Reloader's annotations.
 */
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
/** Copies the Secret to a ConfigMap that every user may read. */
const copies = [
  {
    apiVersion: "v1",
    kind: "ConfigMap",
    name: "copy",
    fields: [{ path: "data.token", from: { source: "secret-theirs", key: "token" } }],
  },
];
const restarts = { targets: [{ kind: "Deployment", name: "victim" }] };

/** Creates a team with a Secret and a workload that bindings should not reach, and an annotated workload. */
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

/** Waits until the binding reports that the account is refused. */
async function refused(team: TestNamespace, name: string): Promise<void> {
  await eventually(async () => {
    const reasons = (await team.binding(name)).status?.conditions.map(({ reason }: AnyObject) => reason);
    assert.match(reasons.join(" "), /Forbidden|ServiceAccountNotFound|ImpersonationForbidden/);
  });
}

describe("an author of bindings, with Reloader's annotations enabled,", function () {
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

  /** The requests as the Reloader account while `act` runs. */
  async function asked(team: TestNamespace, act: () => Promise<unknown>): Promise<AuditedRequest[]> {
    const mark = await auditLog().mark();
    await act();
    await loggedUntilNow(team);
    return (await auditLog().since(mark)).filter(
      ({ as, namespace }) => as === RELOADER && namespace === team.namespace,
    );
  }

  /** Asserts that nothing the attacker wants was read or written, although the Secret changes. */
  async function gainsNothing(
    { team, shop }: { team: TestNamespace; shop: Workloads },
    act: () => Promise<unknown>,
  ): Promise<void> {
    const requests = await asked(team, async () => {
      await act();
      await rotate(team);
      // A later change has been processed.
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

  it("can't use the account of the installation: that account name means an account of the binding's namespace, which must exist", async () => {
    const victim = await newVictim();
    const { team } = victim;
    await gainsNothing(victim, async () => {
      await forge(team, "copies", { sources, targets: copies });
      await forge(team, "restarts", { sources, rollout: restarts });
      for (const name of ["copies", "restarts"]) await refused(team, name);
    });
  });

  it("can't use it in its own namespace either, although the configuration allows bindings there", async () => {
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

  it("gains nothing by creating an account of that name, because no Role allows it", async () => {
    const victim = await newVictim();
    const { team } = victim;
    await team.createAccount(ACCOUNT);
    await gainsNothing(victim, async () => {
      await forge(team, "copies", { sources, targets: copies });
      await refused(team, "copies");
    });
  });

  it("loses a forged generated binding, which is deleted before Inlay acts for it", async () => {
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

  it("loses an edit of a generated binding, which is reverted before Inlay acts for it", async () => {
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

  it("gains nothing by a copy of a generated binding in another namespace", async () => {
    const [victim, { team: origin }] = [await newVictim(), await newVictim()];
    const { team } = victim;
    const { metadata, spec } = await origin.api.get(origin.bindingPath(NAME));
    await gainsNothing(victim, async () => {
      const { labels, ownerReferences } = metadata;
      await forge(team, "reloader-deployment-other", { ...spec, sources }, { labels, ownerReferences });
      await team.untilGone(team.bindingPath("reloader-deployment-other"));
    });
  });

  it("may not edit a generated binding to name other Secrets, even with the account that it uses", async () => {
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
    await eventually(() => assert.rejects(patch, /impersonate serviceaccounts "inlay-reloader"/));
  });
});
