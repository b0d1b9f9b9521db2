/** Workloads, or objects that lead to them, that can't be listed. Restarts wait for the list, and fields do not. */
import assert from "node:assert/strict";
import { CLASS_GROUP, classVolume, installClasses, newClass } from "../controller/classes.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { createNamespace, harborTarget } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";
import type { HttpProxy } from "./http-proxy.ts";
import { startBehindHttpProxy } from "./http-trouble.ts";
import type { ProxiedController } from "./proxied-controller.ts";

const mayListClasses = { apiGroups: [CLASS_GROUP], resources: ["secretproviderclasses"], verbs: ["list", "watch"] };

describe("an API server that does not answer lists of workloads", function () {
  this.timeout("2m");
  let proxied: ProxiedController<HttpProxy>;

  before(async () => {
    await installClasses();
    proxied = await startBehindHttpProxy(1);
  });
  after(() => proxied?.stop());

  /**
   * Creates a binding that writes a field and restarts consumers. The selected lists get no answer until the binding has
   * written twice.
   */
  async function held(isHeld: (path: string) => boolean, workload: object): Promise<void> {
    const team = await createNamespace({ controller: false, rules: [...rolloutRules, mayListClasses] });
    const shop = new Workloads(team);
    const rotate = async () => {
      const access = secretText("access");
      await team.secret("bucket", { access });
      return access;
    };
    const first = await rotate();
    await newClass(team, "store", { bucket: ["access"] });
    await shop.deploy({ core: workload });
    await team.harbor();
    proxied.proxy.hold(isHeld);
    await team.bind("rolls", {
      sources: [{ secret: { name: "bucket" } }],
      targets: [harborTarget({ accesskey: { from: { source: "bucket", key: "access" } } })],
      rollout: { consumersOf: ["bucket"] },
    });
    await eventually(async () => assert.equal((await team.s3()).accesskey, first));
    const { status } = await team.until("rolls", "Synced");
    assert.deepEqual([status.rollout, status.conditions.length], [undefined, 1]);
    const second = await rotate();
    await eventually(async () => assert.equal((await team.s3()).accesskey, second));
    proxied.proxy.resume();
    await shop.rolledOut("rolls", 0, 60_000);
    await rotate();
    await shop.rolledOut("rolls", 1, 60_000);
    assert.deepEqual(await shop.restarts(), { core: 1 });
    await team.unbind("rolls");
  }

  it("delays no field, and a restart only until it answers", () =>
    held((path) => path.includes("/deployments?"), { env: { bucket: ["access"] } }));

  it("delays no field either if the unanswered lists are those of the SecretProviderClasses", () =>
    held((path) => path.includes("/secretproviderclasses?"), { pods: { volumes: [classVolume("store")] } }));
});
