/** What the log says of kinds that the account for Reloader's annotations can't list. */
import assert from "node:assert/strict";
import { Installation } from "../../../../src/api/installation.ts";
import type { Resource } from "../../../../src/apimachinery/objects.ts";
import { Inventory } from "../../../../src/controllers/reloader/inventory.ts";
import { apiError } from "../../cache/list-watch.ts";
import { FakeInformers, version } from "../../informers.ts";
import { DEPLOYMENTS } from "../../resources.ts";

describe("a kind that can't be listed for Reloader's annotations", () => {
  let watcher: FakeInformers;
  let said: string[];
  let served: Resource[];
  let inventory: Inventory;

  beforeEach(() => {
    [watcher, said, served] = [new FakeInformers(), [], []];
    const installation = new Installation({
      ownNamespace: "inlay-system",
      reloader: { namespaces: ["*"], autoReloadAll: false, jobs: false },
    });
    const discovery = {
      byKind: async (_: string, kind: string) => served.find((each) => each.kind === kind),
      forget() {},
    };
    const log = { error: (_: object, text: string) => said.push(text) };
    const as = { identity: "system:serviceaccount:inlay-system:inlay-reloader" } as const;
    inventory = new Inventory({ installation, watcher, discovery, log }, as, () => {});
  });

  const fail = (namespace: string, status: number) => {
    watcher.refuse(`${namespace}/secrets`, apiError(status));
    inventory.in(namespace);
  };

  it("is logged once for all namespaces, with the role that is missing", () => {
    for (const namespace of ["a", "b"]) fail(namespace, 403);
    assert.equal(said.length, 1);
    assert.match(said[0] ?? "", /^secrets can't be listed.*apply deploy\/manifests\/optional\/reloader\.yaml/);
    fail("b", 503);
    fail("b", 403);
    assert.equal(said.length, 1);
  });

  it("is logged again when the first refusal follows another failure", () => {
    for (const status of [503, 503, 403, 403]) fail("a", status);
    fail("b", 403);
    assert.equal(said.length, 2);
    assert.match(said[0] ?? "", /annotations wait in namespace a; see the error$/);
    assert.match(said[1] ?? "", /apply deploy\/manifests\/optional\/reloader\.yaml/);
    assert.deepEqual([...inventory.refused], [["secrets", 2]]);
  });

  it("is as unknown as one of which a workload is too large to be kept", async () => {
    served = [DEPLOYMENTS];
    await inventory.look();
    assert.ok(!inventory.in("a")?.unseen.includes("Deployment"));
    watcher.objects.set("a/deployments/web", { ...version("1"), isTooLarge: true });
    assert.ok(inventory.in("a")?.unseen.includes("Deployment"));
  });
});
