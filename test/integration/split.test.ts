/** Shows that installations for one namespace each continue the work of an installation for the cluster. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { Installation, leads } from "../controller/one-namespace.ts";
import { stopSharedController } from "../controller/shared.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

describe("two installations for one namespace, after one for the cluster", function () {
  this.timeout("4m");
  const parts: Installation[] = [];
  after(() => Promise.all(parts.map((each) => each.stop())));

  const generations = ({ team }: Installation) =>
    Promise.all(
      [team.harborPath(), new Workloads(team).path("app")].map(
        async (path) => (await team.api.get(path)).metadata.generation,
      ),
    );

  it("keep fields and workloads as they are, and then write each change once", async () => {
    await stopSharedController();
    for (let count = 0; count < 2; count++) parts.push(await Installation.make());
    const whole = new ControllerProcess(controlPlane());
    await whole.start();
    const keys = new Map<Installation, string>();
    for (const part of parts) {
      const { team } = part;
      await team.grant(rolloutRules, { role: "rollouts" });
      await team.boundHarbor();
      const shop = new Workloads(team);
      await shop.deploy({ app: { env: { bucket: ["accessKeyID"] }, replicas: 0 } });
      await team.bind("rolls", { sources: [{ secret: { name: "bucket" } }], rollout: { consumersOf: ["bucket"] } });
      keys.set(part, (await shop.until("rolls", "RolledOut")).status.rollout.digestKeyID);
    }
    const before = await Promise.all(parts.map(generations));
    await whole.stop();
    for (const part of parts) await leads(await part.start());
    for (const part of parts) {
      const { team } = part;
      // The new controller has another digest key. From then on, it notices each change.
      await eventually(async () =>
        assert.notEqual((await team.binding("rolls")).status.rollout.digestKeyID, keys.get(part)),
      );
      const value = secretText("rotated");
      await team.secret("bucket", { accessKeyID: value });
      await eventually(async () => assert.equal((await team.s3()).accesskey, value));
    }
    await eventually(async () =>
      assert.deepEqual(
        await Promise.all(parts.map(generations)),
        before.map((all) => all.map((generation) => generation + 1)),
      ),
    );
    for (const { team } of parts) await team.api.delete(team.path("inlay.dev/v1alpha1", "secretbindings"));
  });
});
