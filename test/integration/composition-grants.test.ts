/**
 * SecretGrants for a composition, from the command in the condition to the end of the grant, with restarts of Inlay
 * between.
 */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { isOfBarrier } from "../controller/barrier.ts";
import {
  ACCESS_KEY_BASE,
  compose,
  compositionPath,
  installCompositions,
  removeCompositions,
  TO_CLAIM,
  untilComposition,
} from "../controller/compositions.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { Neighbours } from "../controller/neighbours.ts";
import { commandsIn, paste } from "../controller/paste.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";
import { HttpProxy } from "../faults/http-proxy.ts";

const bindingsOf = (onMissing: "Wait" | "Remove") => {
  const sources = [{ name: "bucket", onMissing, secret: { name: "bucket", granted: true } }];
  return [{ name: "s3", base: { spec: { ...ACCESS_KEY_BASE.spec, sources } }, patches: [TO_CLAIM] }];
};
const RECONCILES = "controller_runtime_reconcile_total";
const BROKEN = { fromFieldPath: "metadata.name", toFieldPath: "spec.serviceAccountName" };

/** A namespace whose HarborCluster `harbor` is a claim, and the value of the Secret `bucket`. */
async function newClaim(onMissing: "Wait" | "Remove" = "Remove") {
  const team = await createNamespace();
  const both = new Neighbours(team, team);
  const value = await both.rotate();
  await team.harbor();
  await compose(team, "harbor", { bindings: bindingsOf(onMissing) });
  const grant = () => both.grant("composition", { from: [{ composition: `${team.namespace}-harbor` }] });
  return { team, both, value, grant };
}

/** Restarts the controller and waits until it has reconciled everything. Returns its writes. */
async function writesOfRestart(
  team: TestNamespace,
  next = team.controller,
  start = () => next.start(),
): Promise<string[]> {
  await team.barrier();
  await stopSharedController();
  const mark = await auditLog().mark();
  await start();
  await team.barrier({ controller: next });
  const writes = await auditLog().controllerWritesSince(mark);
  return writes
    .filter((each) => each.namespace === team.namespace || each.name.startsWith(`${team.namespace}-`))
    .filter((each) => !isOfBarrier(each))
    .map(({ verb, resource, name }) => `${verb} ${resource} ${name}`);
}

describe("a SecretGrant for a composition", function () {
  this.timeout("2m");
  before(() => installCompositions());
  after(() => removeCompositions());

  it("is created by the command of NotGranted; then the value is written and follows rotations", async () => {
    const { team, both, value } = await newClaim();
    const { status } = await team.until("harbor-s3", "NotGranted");
    assert.deepEqual(await paste(commandsIn(status.conditions[0].message)), []);
    await both.untilHeld(value);
    const { items } = await team.api.get(team.path("inlay.dev/v1alpha1", "secretgrants"));
    assert.deepEqual(
      items.map(({ spec }: AnyObject) => [spec.from, spec.to]),
      [[[{ composition: `${team.namespace}-harbor` }], [{ kind: "Secret", name: "bucket" }]]],
    );
    await both.untilHeld(await both.rotate());
    await untilComposition(team, "harbor", "Ready");
  });

  it("stays valid over a restart, which writes nothing, and a rotation while Inlay does not run is copied", async () => {
    const { team, both, value, grant } = await newClaim();
    await grant();
    await both.untilHeld(value);
    await untilComposition(team, "harbor", "Ready");
    assert.deepEqual(await writesOfRestart(team), []);
    assert.equal((await team.s3()).accesskey, value);
    await team.until("harbor-s3", "Synced");
    await team.controller.stop();
    const rotated = await both.rotate();
    await team.controller.start();
    await both.untilHeld(rotated);
  });

  it("is not in doubt at a start at which the compositions are listed long before the bindings", async () => {
    const { team, both, value, grant } = await newClaim();
    await grant();
    await both.untilHeld(value);
    await untilComposition(team, "harbor", "Ready");
    const { url } = controlPlane();
    const proxy = await HttpProxy.start(url, await controlPlane().servingIdentity());
    const controller = new ControllerProcess({
      kubeconfigForServiceAccount: (namespace, name) =>
        controlPlane().kubeconfigForServiceAccount(namespace, name, proxy.url),
    });
    try {
      proxy.hold((path) => path.includes("/secretbindings?"));
      const start = async () => {
        await controller.start();
        // Then each waits for some seconds before the next attempt.
        const { length } = (await team.api.get(compositionPath(team, "").replace(/\/[^/]*$/, ""))).items;
        const tried = () => controller.metric(RECONCILES, 'controller="bindingcomposition"');
        await eventually(async () => assert.ok((await tried()) >= 3 * length));
        proxy.resume();
      };
      assert.deepEqual(await writesOfRestart(team, controller, start), []);
    } finally {
      await controller.stop();
      await proxy.stop();
    }
  });

  for (const [onMissing, left] of [
    ["Remove", () => undefined],
    ["Wait", (value: string) => value],
  ] as const)
    it(`that is withdrawn makes the binding GrantWithdrawn, and ${onMissing} works as for any other grant`, async () => {
      const { team, both, value, grant } = await newClaim(onMissing);
      await grant();
      await both.untilHeld(value);
      await both.withdraw("composition");
      await team.until("harbor-s3", "GrantWithdrawn");
      const rotated = await both.rotate();
      await team.barrier();
      await both.untilHeld(left(value));
      await grant();
      await both.untilHeld(rotated);
    });

  it("removes nothing by a restart while its composition is not accepted, and Inlay reads nothing until it is", async () => {
    const { team, both, value, grant } = await newClaim();
    await grant();
    await both.untilHeld(value);
    const broken = bindingsOf("Remove").map((each) => ({ ...each, patches: [...each.patches, BROKEN] }));
    await team.api.merge(compositionPath(team, "harbor"), { spec: { bindings: broken } });
    await untilComposition(team, "harbor", "InvalidComposition");
    const before = await team.binding("harbor-s3");
    await writesOfRestart(team);
    await team.until("harbor-s3", "Unavailable");
    const rotated = await both.rotate();
    await team.barrier();
    assert.equal((await team.s3()).accesskey, value);
    const { metadata, spec } = await team.binding("harbor-s3");
    assert.deepEqual([metadata.uid, spec], [before.metadata.uid, before.spec]);
    await team.api.merge(compositionPath(team, "harbor"), { spec: { bindings: bindingsOf("Remove") } });
    await both.untilHeld(rotated);
    await untilComposition(team, "harbor", "Ready");
  });

  it("has no effect when its composition is deleted and leaves its bindings", async () => {
    const { team, both, value, grant } = await newClaim("Wait");
    await grant();
    await both.untilHeld(value);
    await team.api.merge(compositionPath(team, "harbor"), { spec: { deletionPolicy: "Orphan" } });
    await untilComposition(team, "harbor", "Ready");
    await team.api.delete(compositionPath(team, "harbor"));
    await team.untilGone(compositionPath(team, "harbor"));
    await team.until("harbor-s3", "GrantWithdrawn");
    await both.rotate();
    await team.barrier();
    await eventually(async () => assert.equal((await team.s3()).accesskey, value));
  });
});
