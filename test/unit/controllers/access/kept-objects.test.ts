/** Which ServiceAccounts, Roles and RoleBindings are kept, and how many. */
import assert from "node:assert/strict";
import type { KubeObject } from "../../../../src/apimachinery/objects.ts";
import { ROLES } from "../../../../src/apimachinery/resources.ts";
import { isMarked, KeptObjects, MAX_IN_NAMESPACE } from "../../../../src/controllers/access/controller.ts";

const role = (name: string, labels: Record<string, string>, finalizers: string[] = []): KubeObject => ({
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "Role",
  metadata: { name, namespace: "team", uid: name, resourceVersion: "1", labels, finalizers },
});
const LABELS = { "inlay.dev/access": "true" };

describe("the objects that stay until bindings are released", () => {
  it("are those with the label or the finalizer, and with the label alone as many as get the finalizer", () => {
    const objects = new KeptObjects();
    for (let n = 0; n < 2 * MAX_IN_NAMESPACE; n++) objects.put(ROLES, role(`role-${n}`, LABELS));
    objects.put(ROLES, role("other", {}));
    objects.put(ROLES, role("marked", {}, ["inlay.dev/access"]));
    const kept = objects.in("team");
    assert.equal(kept.length, MAX_IN_NAMESPACE + 1);
    assert.deepEqual(
      kept.filter(isMarked).map(({ name }) => name),
      ["marked"],
    );
    objects.put(ROLES, role("marked", {}));
    assert.equal(objects.in("team").length, MAX_IN_NAMESPACE);
    for (const { name } of objects.in("team")) objects.remove(ROLES, `team/${name}`);
    assert.deepEqual(objects.namespaces, []);
  });
});
