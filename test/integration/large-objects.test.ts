/** A binding with targets that are larger than the controller's memory. They are written some at a time. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { ConfinedController } from "../controller/confined.ts";
import { eventually } from "../controller/eventually.ts";
import { foundIn, secretText } from "../controller/leak-detector.ts";
import { scaled } from "../controller/scale.ts";
import { stopSharedController } from "../controller/shared.ts";
import { createNamespace } from "../controller/test-namespace.ts";

/** A controller with all of them in memory runs out of it at 160 objects, and not at 110. */
const LARGE = scaled(200, 160);

describe(`${LARGE} objects that are too large to be in memory together`, function () {
  this.timeout("4m");
  let controller: ConfinedController;

  before(async () => {
    await stopSharedController();
    controller = new ConfinedController(controlPlane());
    await controller.start();
  });
  after(async () => {
    await controller?.stop();
    assert.deepEqual(foundIn(controller.output), []);
  });

  it("are written some at a time, and then another binding's at once", async () => {
    const good = await createNamespace({ controller: false });
    await good.boundHarbor();
    const rich = await createNamespace({ controller: false });
    await rich.secret("small", { value: secretText("small") });
    const large = { large: `${secretText("large")}${"x".repeat(900 * 1024)}` };
    const names = Array.from({ length: LARGE }, (_, n) => `large-${n}`);
    for (let from = 0; from < LARGE; from += 10) {
      const create = (name: string) =>
        rich.api.create(rich.path("v1", "configmaps"), { metadata: { name }, data: large });
      await Promise.all(names.slice(from, from + 10).map(create));
    }
    await rich.grant([{ apiGroups: [""], resources: ["configmaps"], verbs: ["patch"] }], { role: "large" });
    await rich.bind("large", {
      sources: [{ secret: { name: "small" } }],
      targets: [
        {
          apiVersion: "v1",
          kind: "ConfigMap",
          selector: { names: ["large-*"] },
          fields: [{ path: "data.value", from: { source: "small", key: "value" } }],
        },
      ],
    });
    const { status } = await rich.until("large", "Synced", 180_000);
    assert.equal(status.synced, `${LARGE}/${LARGE}`);
    const accessKeyID = secretText("access");
    await good.secret("bucket", { accessKeyID });
    await eventually(async () => assert.equal((await good.s3()).accesskey, accessKeyID), 5_000);
    await controller.isWell();
  });
});
