/** How much the finalizers of one namespace may delay those of others. */
import assert from "node:assert/strict";
import type { KubeObject, Resource } from "../../../../src/apimachinery/objects.ts";
import { ROLES } from "../../../../src/apimachinery/resources.ts";
import { AccessController, MAX_IN_NAMESPACE } from "../../../../src/controllers/access/controller.ts";
import { settledWhen } from "../../clock.ts";

const marked = (name: string): KubeObject => ({
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "Role",
  metadata: { name, namespace: "team", uid: name, resourceVersion: "1", finalizers: ["inlay.dev/access"] },
});

describe("the finalizer of access", () => {
  it("is removed from few objects of a namespace at once, so that other namespaces have their turn", async () => {
    const roles = Array.from({ length: 3 * MAX_IN_NAMESPACE }, (_, n) => marked(`role-${n}`));
    let patches = 0;
    let opened = 0;
    const listWatch = ({ resource }: { resource: Resource }) => ({
      async *list() {
        yield { items: resource === ROLES ? roles : [], resourceVersion: "1" };
      },
      async *watch(_: string, __: number, signal: AbortSignal, onOpen: () => void) {
        onOpen();
        opened++;
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      },
    });
    const controller = new AccessController({
      installation: { scope: undefined },
      client: { may: async () => true, mergePatch: async () => void patches++ },
      listWatch,
      bindings: { get: () => undefined, listen: () => {}, state: { phase: "synced", refused: false } },
      serverTime: () => Date.now(),
    } as never);
    await controller.reconcile("");
    await settledWhen(() => opened === 3);
    assert.deepEqual(await controller.reconcile("team"), { retry: "after", ms: 100 });
    assert.equal(patches, MAX_IN_NAMESPACE);
    await controller.stop();
  });
});
