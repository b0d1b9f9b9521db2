/**
 * The SecretBinding CRD is replaced by that of another version of Inlay while bindings exist. No workload restarts, and
 * nothing is written for it.
 */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { watchesFor } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { createNamespace, RESTARTED_WITHIN_MS, type TestNamespace } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/secretbindings.inlay.dev";
const LATER = "addedLater";

/** The other version has one more field in the spec and in its rollout, which every binding gets by its default. */
function upgraded(spec: AnyObject): AnyObject {
  const after = structuredClone(spec);
  const { properties } = after.versions[0].schema.openAPIV3Schema.properties.spec;
  const field = { type: "string", default: "new", description: "A field of another version." };
  properties[LATER] = field;
  properties.rollout.properties[LATER] = field;
  return after;
}

/** Replaces the spec of the CRD, and waits until the API server reads bindings by it. */
async function become(team: TestNamespace, spec: AnyObject, isThere: (binding: AnyObject) => boolean): Promise<void> {
  await team.api.jsonPatch(CRD, [{ op: "replace", path: "/spec", value: spec }]);
  await eventually(async () => assert.ok(isThere(await team.binding("rolls"))));
}

/** Waits until the controller watches a kind as an account of the team, since a mark. */
async function untilWatched(team: TestNamespace, mark: number, kind: string): Promise<void> {
  await eventually(async () => {
    const watches = await watchesFor(team, mark);
    assert.ok(watches.some(({ resource, open }) => resource === kind && open));
  }, RESTARTED_WITHIN_MS);
}

describe("an upgrade of the CRD", function () {
  this.timeout("2m");

  it("restarts no workload, writes nothing, and loses no change", async () => {
    const team = await createNamespace({ rules: rolloutRules });
    const shop = new Workloads(team);
    await team.secret("bucket", { access: secretText("access") });
    await shop.deploy({ core: { env: { bucket: ["access"] } } });
    const rollout = { consumersOf: ["bucket"] };
    await team.bind("rolls", { sources: [{ secret: { name: "bucket" } }], rollout });
    await shop.rolledOut("rolls", 0);
    const { metadata } = await team.binding("rolls");
    const { spec: before } = await team.api.get(CRD);
    const isUpgraded = ({ spec }: AnyObject) => spec[LATER] === "new" && spec.rollout[LATER] === "new";
    try {
      for (const [spec, isThere] of [
        [upgraded(before), isUpgraded],
        [before, (binding: AnyObject) => !isUpgraded(binding)],
      ] as const) {
        const requests = await team.requestsDuring(async () => {
          await become(team, spec, isThere);
          await team.barrier();
          await team.controller.stop();
          const mark = await auditLog().mark();
          await team.controller.start();
          await untilWatched(team, mark, "apps/deployments");
        });
        const writes = requests.filter(({ verb }) => ["create", "patch", "update", "delete"].includes(verb));
        assert.deepEqual(
          writes.map(({ verb, uri }) => `${verb} ${uri}`),
          [],
        );
        assert.equal((await team.binding("rolls")).metadata.resourceVersion, metadata.resourceVersion);
        assert.deepEqual(await shop.restarts(), { core: 0 });
      }
      await become(team, upgraded(before), isUpgraded);
      await team.secret("bucket", { access: secretText("access") });
      await shop.rolledOut("rolls", 1);
      assert.deepEqual(await shop.restarts(), { core: 1 });
    } finally {
      await become(team, before, (binding) => !isUpgraded(binding));
    }
  });
});
