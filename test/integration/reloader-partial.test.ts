/** Shows that annotations restart workloads of each kind that the role allows, for each kind of source that it allows. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { untilMay, untilMayNot } from "../controller/access.ts";
import { AUTO, annotated, named, newShop, warningsOn } from "../controller/annotated.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { installReloader, madeIn, RELOADER, reloading, removeReloader, untilMade } from "../controller/reloader.ts";

const ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/inlay-reloader";
const REFUSED = "inlay_reloader_refused_lists";
const DEFAULT = { debounce: "500ms" };

describe("annotations of Reloader", function () {
  this.timeout("3m");
  let controller: ControllerProcess | undefined;
  let api: Api;
  let rules: AnyObject[];

  before(async () => {
    await installReloader();
    api = new Api(controlPlane());
    ({ rules } = await api.get(ROLE));
  });
  afterEach(async () => {
    await controller?.stop();
    await api.merge(ROLE, { rules });
  });
  after(removeReloader);

  /** Gives the account the role without a resource. */
  async function withhold(resource: string, group: string): Promise<void> {
    const others = rules.map((rule) => ({
      ...rule,
      resources: rule["resources"].filter((each: string) => each !== resource),
    }));
    await api.merge(ROLE, { rules: others.filter(({ resources }) => resources.length > 0) });
    await untilMayNot(RELOADER, { verb: "list", group, resource });
  }

  async function grantAll(resource: string, group: string): Promise<void> {
    await api.merge(ROLE, { rules });
    await untilMay(RELOADER, { verb: "list", group, resource });
  }

  it("restart Deployments although the role lacks CronJobs, and the log and a metric name what is missing", async () => {
    await withhold("cronjobs", "batch");
    controller = await reloading({ namespaces: ["team-*"] });
    await controller.start();
    const shop = await newShop();
    await shop.make(annotated("core", AUTO));
    await untilMade(shop.team, named("core"));
    await shop.restartedBy(() => shop.rotate("one"), ["core"], named("core"));
    assert.ok((await controller.metric(REFUSED, 'resource="batch/cronjobs"')) >= 1);
    assert.match(
      controller.output,
      /batch\/cronjobs can't be listed.*bind its role, or add CronJob to reloader.ignoreKinds/,
    );
    assert.equal(controller.output.split("batch/cronjobs can't be listed").length, 2, "logged once");
    await grantAll("cronjobs", "batch");
    const isOver = async () => assert.equal(await controller?.metric(REFUSED, 'resource="batch/cronjobs"'), 0);
    await eventually(isOver, 90_000);
  });

  it("restart for ConfigMaps although the role lacks Secrets, and say so on the workload and the binding", async () => {
    await withhold("secrets", "");
    controller = await reloading({ namespaces: ["team-*"] });
    await controller.start();
    const shop = await newShop();
    await shop.make(annotated("core", AUTO));
    const [binding] = named("core") as [string];
    await untilMade(shop.team, [binding]);
    await shop.configure("config", "2");
    await eventually(async () => assert.deepEqual(await shop.restarts(), { core: 1 }));
    await eventually(async () =>
      assert.match((await warningsOn(shop.team, "core")).join(), /Secret one, because Inlay may not list/),
    );
    await grantAll("secrets", "");
    const hasBoth = async () => assert.equal((await shop.team.binding(binding)).spec.sources.length, 2);
    await eventually(hasBoth, 60_000);
    await untilMade(shop.team, [binding]);
    await shop.rotate("one");
    await eventually(async () => assert.deepEqual(await shop.restarts(), { core: 2 }));
    await untilMade(shop.team, [binding]);

    await controller.stop();
    await withhold("secrets", "");
    await controller.start();
    const refused = await shop.until(binding, "Forbidden", 60_000);
    assert.match(JSON.stringify(refused.status.conditions), /secrets/);
    await shop.configure("config", "3");
    await eventually(async () => assert.deepEqual(await shop.restarts(), { core: 3 }));
    await hasBoth();
  });

  it("restart a workload a few times for 40 changes in 2 s, with the default debounce", async () => {
    controller = await reloading({ namespaces: ["team-*"], ...DEFAULT });
    await controller.start();
    const shop = await newShop();
    await shop.make(annotated("core", AUTO));
    await untilMade(shop.team, named("core"));
    const [made] = await madeIn(shop.team);
    assert.equal(made?.["spec"].rollout.debounce, "500ms");
    for (let change = 0; change < 40; change++) {
      const next = performance.now() + 50;
      await shop.rotate("one");
      await eventually(() => assert.ok(performance.now() >= next));
    }
    await shop.barrier();
    const { core = 0 } = await shop.restarts();
    assert.ok(core >= 1 && core <= 4, `${core} restarts`);
  });
});
