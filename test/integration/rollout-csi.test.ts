/** Shows that workloads that mount a Secret by a SecretProviderClass are consumers of the Secret that the driver writes. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { CLASS_GROUP, classesPath, classVolume, installClasses, newClass } from "../controller/classes.ts";
import { inlayJson } from "../controller/cli.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { rolloutBarrier } from "../controller/rollout-barrier.ts";
import { stopSharedController } from "../controller/shared.ts";
import { createNamespace, type Rule, type TestNamespace } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const mayFollow: Rule = { apiGroups: [CLASS_GROUP], resources: ["secretproviderclasses"], verbs: ["list", "watch"] };

/** The spec of pods that mount a class. */
const mounting = (name: string) => ({ pods: { volumes: [classVolume(name)] } });

/** Creates a team with a Secret of two keys, and a binding that restarts the consumers. */
async function newShop(more: Rule[] = [mayFollow]) {
  const team = await createNamespace({ rules: [...rolloutRules, ...more] });
  const shop = new Workloads(team);
  const rotate = (key: string) => team.secret("bucket", { [key]: secretText(key) });
  await rotate("token");
  await rotate("other");
  const bind = async () => {
    await team.bind("rolls", { sources: [{ secret: { name: "bucket" } }], rollout: { consumersOf: ["bucket"] } });
    await shop.rolledOut("rolls", 0);
  };
  return { team, shop, rotate, bind };
}

const digests = async (team: TestNamespace) => Object.keys((await team.binding("rolls")).status.rollout.digests).sort();

describe("a workload that mounts a SecretProviderClass", function () {
  this.timeout("2m");

  before("its kind is installed", async () => {
    await installClasses();
    // The controller looks for a kind that is missing once in a minute.
    await stopSharedController();
  });

  it("restarts for the keys that its class has written into the Secret, and for no others", async () => {
    const { team, shop, rotate, bind } = await newShop();
    await newClass(team, "store", { bucket: ["token"] });
    await newClass(team, "elsewhere", { another: ["token"] });
    await shop.deploy({ web: mounting("store"), api: mounting("elsewhere"), idle: {} });
    await bind();
    await eventually(async () => assert.deepEqual(await digests(team), ["bucket/token"]));
    await rotate("token");
    await shop.rolledOut("rolls", 1);
    assert.deepEqual(await shop.restarts(), { web: 1, api: 0, idle: 0 });
    await rotate("other");
    await rolloutBarrier(team);
    assert.deepEqual(await shop.restarts(), { web: 1, api: 0, idle: 0 });
    const { json } = await inlayJson(controlPlane().kubeconfigFile, "trace", "bucket", "-n", team.namespace);
    const [web, ...others] = json.workloads;
    assert.deepEqual(
      [web.name, web.references, web.keys, web.restarts.length, others],
      ["web", ["csi"], ["token"], 1, []],
    );
  });

  it("is a consumer once its class is created, which restarts nothing, and no longer when the class names another Secret", async () => {
    const { team, shop, rotate, bind } = await newShop();
    await shop.deploy({ web: mounting("store") });
    await bind();
    await newClass(team, "store", { bucket: ["token"] });
    await eventually(async () => assert.deepEqual(await digests(team), ["bucket/token"]));
    assert.deepEqual(await shop.restarts(), { web: 0 });
    await rotate("token");
    await shop.rolledOut("rolls", 1);
    assert.deepEqual(await shop.restarts(), { web: 1 });
    await team.api.merge(`${classesPath(team)}/store`, { spec: { secretObjects: [{ secretName: "another" }] } });
    await eventually(async () => assert.deepEqual(await digests(team), []));
    await rotate("token");
    await rolloutBarrier(team);
    assert.deepEqual(await shop.restarts(), { web: 1 });
  });

  it("is no consumer where the account may not list the classes, until it may; other workloads restart", async () => {
    const { team, shop, rotate, bind } = await newShop([]);
    await newClass(team, "store", { bucket: ["token"] });
    await shop.deploy({ web: mounting("store"), api: { env: { bucket: ["token"] } } });
    await bind();
    await rotate("token");
    await shop.rolledOut("rolls", 1);
    assert.deepEqual(await shop.restarts(), { web: 0, api: 1 });
    await team.grant([mayFollow], { role: "classes" });
    await eventually(async () => {
      const { status } = await team.binding("rolls");
      assert.match(JSON.stringify(status.conditions), /all 2 workloads/);
    }, 90_000);
    await rotate("token");
    await shop.rolledOut("rolls", 2);
    assert.deepEqual(await shop.restarts(), { web: 1, api: 2 });
  });
});
