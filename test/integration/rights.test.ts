/**
 * Shows that the controller has exactly the shipped permissions, and that the checks notice any other request, or a request that
 * bypasses the account of a binding. After every test file, test/whole-run/rights.ts checks the requests by the API server's
 * audit log.
 */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import type { AuditedRequest } from "../controller/audit.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { newNeighbours } from "../controller/neighbours.ts";
import { CONTROLLER, loggedUntilNow } from "../controller/requests.ts";
import { describeRight, isAdmitted, type Right, rightsOf } from "../controller/rights.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";
import { RightsCheck, type ShippedRights, shippedRights } from "../whole-run/rights.ts";

describe("the controller", function () {
  this.timeout("2m");
  let team: TestNamespace;
  let shipped: ShippedRights;
  let requests: AuditedRequest[];
  let check: RightsCheck;

  before("uses each of its own permissions at least once", async () => {
    const mark = await auditLog().mark();
    const { both } = await newNeighbours();
    const labels = { "kubernetes.io/metadata.name": both.reader.namespace };
    await both.grant("bucket", { from: [{ namespaceSelector: { matchLabels: labels } }] });
    await both.reader.bind("harbor-s3", both.spec());
    await both.reader.until("harbor-s3", "Synced");
    await stopSharedController();
    const controller = new ControllerProcess(controlPlane(), "--leader-elect");
    team = await createNamespace({ controller: false });
    try {
      await controller.start();
      await team.boundHarbor({ onRelease: "Remove" });
      await team.unbind("harbor-s3");
      await eventually(async () => assert.notDeepEqual(await team.events("harbor-s3"), []));
    } finally {
      await controller.stop();
    }
    await loggedUntilNow(team);
    shipped = await shippedRights();
    requests = (await auditLog().since(mark)).filter(({ user }) => user === CONTROLLER);
    check = new RightsCheck(new Api(controlPlane()), auditLog(), shipped, mark);
    await check.check();
  });

  it("has the shipped permissions and no others, except for accounts that tests allow", async () => {
    const RBAC = "/apis/rbac.authorization.k8s.io/v1";
    const ofController = (bindings: AnyObject) =>
      bindings.items.filter(({ subjects = [] }: AnyObject) =>
        subjects.some(
          ({ kind, namespace, name }: AnyObject) =>
            kind === "ServiceAccount" && CONTROLLER === `system:serviceaccount:${namespace}:${name}`,
        ),
      );
    const wide = ofController(await team.api.get(`${RBAC}/clusterrolebindings`));
    assert.deepEqual(wide.map(({ roleRef }: AnyObject) => roleRef.name).sort(), [
      "inlay-controller",
      "inlay-shared-watches",
    ]);
    const { rules } = await team.api.get(`${RBAC}/clusterroles/inlay-controller`);
    const granted: Right[] = rules.flatMap(rightsOf);
    for (const { metadata, roleRef } of ofController(await team.api.get(`${RBAC}/rolebindings`))) {
      assert.equal(roleRef.kind, "Role");
      const role = await team.api.find(`${RBAC}/namespaces/${metadata.namespace}/roles/${roleRef.name}`);
      const inRole: Right[] = (role?.rules ?? []).flatMap(rightsOf);
      if (metadata.namespace === "inlay-system") granted.push(...inRole);
      else assert.ok(inRole.every(({ resource, name }) => resource === "serviceaccounts" && name !== undefined));
    }
    assert.deepEqual(granted.map(describeRight).sort(), shipped.controller.map(describeRight).sort());
  });

  it("impersonates an account only for bindings that name it, and the check notices any other request", () => {
    const read = requests.find(
      ({ as, verb, resource, namespace }) =>
        as !== undefined && verb === "get" && resource === "secrets" && namespace === team.namespace,
    );
    assert.ok(read !== undefined && isAdmitted(read) && check.isNamed(read));
    for (const change of [
      { name: "another" },
      { namespace: "kube-system" },
      { verb: "patch" },
      { verb: "list", name: "", namespace: "" },
      { resource: "configmaps" },
      { as: "system:serviceaccount:kube-system:inlay" },
      { at: "2000-01-01T00:00:00.000000Z" },
    ]) {
      assert.equal(check.isNamed({ ...read, ...change }), false, JSON.stringify(change));
    }
    for (const change of [{}, { verb: "list" }, { resource: "configmaps" }, { resource: "secrets", verb: "patch" }]) {
      assert.equal(check.isAllowed({ ...read, as: undefined, ...change }), false, JSON.stringify(change));
    }
  });
});
