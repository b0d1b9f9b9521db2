/** The release of a deleted binding that can't be finished is given up after a minute. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { foundIn } from "../controller/leak-detector.ts";
import { untilEvent } from "../controller/released.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

const remove = { onRelease: "Remove" };

/** By how much the controller's clock runs fast, for a minute to be over sooner. */
const FAST = 10;
const clock = `const { now } = Date; const start = now(); Date.now = () => start + (now() - start) * ${FAST};`;

class FastController extends ControllerProcess {
  protected override readonly env = {
    ...process.env,
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(clock)}`,
  };
}

describe("a deleted binding that removes, and can't,", () => {
  let controller: ControllerProcess;

  before(async () => {
    await stopSharedController();
    controller = new FastController(controlPlane());
    await controller.start();
  });
  after(async () => {
    await controller?.stop();
    assert.deepEqual(foundIn(controller.output), []);
  });

  const boundTeam = async () => {
    const team = await createNamespace({ controller: false });
    return { team, accessKey: await team.boundHarbor(remove) };
  };

  /** Deletes the binding, and waits until it is gone, which is after a minute of the controller's clock and not before. */
  async function deleted(team: TestNamespace): Promise<void> {
    await team.api.delete(team.bindingPath("harbor-s3"));
    const { deletionTimestamp } = (await team.binding("harbor-s3")).metadata;
    await team.untilGone(team.bindingPath("harbor-s3"), 30_000);
    assert.ok((Date.now() - Date.parse(deletionTimestamp)) * FAST >= 59_000);
  }

  it("since its account was deleted, is not acted for, and goes after a minute", async () => {
    const { team } = await boundTeam();
    await team.api.delete(`${team.path("v1", "serviceaccounts")}/inlay`);
    await team.until("harbor-s3", "ServiceAccountNotFound");
    const mark = await auditLog().mark();
    await deleted(team);
    const asAccount = (await auditLog().since(mark)).filter(({ as, namespace }) => as && namespace === team.namespace);
    assert.deepEqual(
      asAccount.filter(({ verb }) => verb === "patch" || verb === "get"),
      [],
    );
    await untilEvent(team, "harbor-s3", "ReleaseAbandoned", /gave up after 60 s/);
  });

  it("since its account may not write any more, goes after a minute, leaves the value and tells", async () => {
    const { team, accessKey } = await boundTeam();
    await team.revoke();
    await deleted(team);
    assert.equal((await team.s3()).accesskey, accessKey);
    await untilEvent(team, "harbor-s3", "ReleaseAbandoned", /harborclusters/);
  });
});
