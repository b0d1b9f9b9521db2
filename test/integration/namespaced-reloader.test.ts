/** Reloader's annotations in a namespaced Inlay work by Roles in that namespace, and nowhere else. */
import assert from "node:assert/strict";
import { may, untilMay } from "../controller/access.ts";
import { AUTO, annotated, named, newShop, type Shop } from "../controller/annotated.ts";
import type { AuditedRequest } from "../controller/audit.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { Installation, leads } from "../controller/one-namespace.ts";
import { configFile, madeIn, untilMade } from "../controller/reloader.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";

const ACCOUNT = "inlay-reloader";
const sources = [{ name: "secret-theirs", optional: true, secret: { name: "theirs" } }];
const rollout = { targets: [{ kind: "Deployment", name: "victim" }] };

describe("a namespaced Inlay with Reloader's annotations enabled", function () {
  this.timeout("2m");
  let one: Installation;
  let shop: Shop;
  let outside: Shop;
  let controller: ControllerProcess;
  let mark: number;
  const user = () => `system:serviceaccount:${one.team.namespace}:${ACCOUNT}`;

  before(async () => {
    await stopSharedController();
    mark = await auditLog().mark();
    one = await Installation.make();
    await one.apply("optional/reloader.yaml");
    const { namespace } = one.team;
    await untilMay(user(), { verb: "watch", resource: "secrets", namespace });
    await untilMay(one.user, { verb: "impersonate", resource: "serviceaccounts", name: ACCOUNT, namespace });
    [shop, outside] = [await newShop(one.team), await newShop()];
    controller = await one.start("inlay-controller", "--config", await configFile({ namespaces: ["*"] }));
    await leads(controller);
  });
  after(() => one?.stop());

  it("restarts a workload for the objects it refers to, as an account of that namespace, and none in another namespace", async () => {
    await outside.make(annotated("core", AUTO));
    await shop.make(annotated("core", AUTO), annotated("none", {}));
    await untilMade(shop.team, named("core"));
    await outside.rotate("one");
    await shop.restartedBy(() => shop.rotate("one"), ["core"], named("core"));
    await shop.restartedBy(() => shop.configure("config", "2"), ["core"], named("core"));
    assert.deepEqual(await madeIn(outside.team), []);
    assert.deepEqual(await outside.restarts(), { core: 0 });
    const { namespace } = outside.team;
    assert.equal(await may(user(), { verb: "get", resource: "secrets", namespace }), false);
    assert.doesNotMatch(controller.output, /can't be read/);
  });

  it("does not act as the Reloader account for a binding that a user writes, with or without the label of a generated binding", async () => {
    const { team } = shop;
    await shop.rotate("theirs");
    await shop.make(annotated("victim", {}));
    const forge = (name: string, metadata: object) =>
      team.api.create(team.path("inlay.dev/v1alpha1", "secretbindings"), {
        apiVersion: "inlay.dev/v1alpha1",
        kind: "SecretBinding",
        metadata: { name, ...metadata },
        spec: { serviceAccountName: ACCOUNT, sources, rollout },
      });
    await forge("own", {});
    const { status } = await team.until("own", "ImpersonationForbidden");
    assert.match(status.conditions[0].message, /reserved for the annotations of Reloader; .*another account/);
    const labels = { "inlay.dev/generated-for": "reloader" };
    await forge("reloader-deployment-victim", { labels });
    await team.untilGone(team.bindingPath("reloader-deployment-victim"));
    await shop.rotate("theirs");
    await shop.restartedBy(() => shop.rotate("one"), ["core"], named("core"));
    await team.unbind("own");
    const asked = (await one.requests(mark)).filter(({ as }) => as === user());
    assert.deepEqual(
      asked.filter(({ name }) => name === "theirs" || name === "victim"),
      [],
    );
  });

  it("requests nothing of another namespace, and uses only permissions that the shipped Role gives", async () => {
    const all = await one.requests(mark);
    const isElsewhere = ({ resource, namespace }: AuditedRequest) =>
      !/^(authorization\.k8s\.io\/selfsubject\w+reviews)?$/.test(resource) && namespace !== one.team.namespace;
    assert.deepEqual(all.filter(isElsewhere), []);
    assert.deepEqual(
      all.filter(({ lacks }) => lacks === "a right"),
      [],
    );
    assert.ok(
      all.some(({ verb, resource, as }) => verb === "patch" && resource === "apps/deployments" && as === user()),
    );
  });

  it("logs which file to apply when the file is missing", async () => {
    const none = await Installation.make();
    try {
      const without = await none.start("inlay-controller", "--config", await configFile({ namespaces: ["*"] }));
      await eventually(() => assert.match(without.output, /apply deploy\/namespaced\/optional\/reloader\.yaml/));
    } finally {
      await none.stop();
    }
  });
});
