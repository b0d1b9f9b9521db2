/**
 * Shows what restarts by the annotations of a Reloader user who only replaces the controller: when, how often, and as which
 * account.
 */
import assert from "node:assert/strict";
import { AUTO, annotated, listed, named, newShop, type Shop, warningsOn } from "../controller/annotated.ts";
import type { AnyObject } from "../controller/api.ts";
import { installRollouts, newRollout, removeRollouts, rolloutsPath } from "../controller/argo.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { foundIn } from "../controller/leak-detector.ts";
import {
  installReloaderByPage,
  madeIn,
  RELOADER,
  reloading,
  removeReloader,
  untilMade,
} from "../controller/reloader.ts";
import { CONTROLLER, loggedUntilNow } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";

describe("with Reloader's annotations enabled", function () {
  this.timeout("3m");
  let controller: ControllerProcess;
  let mark: number;
  /**
   * Has a workload of a kind that was not served when the controller started. The controller looks for new kinds periodically.
   */
  let served: Shop;

  before(async () => {
    await installReloaderByPage();
    mark = await auditLog().mark();
    controller = await reloading({ namespaces: ["team-*"] });
    await controller.start();
    served = await newShop();
    await installRollouts();
    await newRollout(served.team, "app", AUTO, annotated("app", {}).spec.template);
  });
  after(async () => {
    await controller?.stop();
    await removeReloader();
    await removeRollouts();
    assert.deepEqual(foundIn(controller.output), []);
  });

  it("each annotation restarts the workloads that Reloader restarts, for Secrets and ConfigMaps alike", async () => {
    const shop = await newShop();
    const { team } = shop;
    await shop.rotate("beside");
    await shop.configure("other", "1");
    const all: Record<string, AnyObject> = {
      auto: annotated("auto", AUTO),
      "secret-auto": annotated("secret-auto", { "secret.reloader.stakater.com/auto": "true" }),
      "configmap-auto": annotated("configmap-auto", { "configmap.reloader.stakater.com/auto": "true" }),
      listed: annotated("listed", listed("nowhere, beside")),
      pattern: annotated("pattern", listed("be.*")),
      "listed-config": annotated("listed-config", { "configmap.reloader.stakater.com/reload": "o[a-z]+" }),
      search: annotated("search", { "reloader.stakater.com/search": "true" }),
      excluded: annotated("excluded", { ...AUTO, "secrets.exclude.reloader.stakater.com/reload": "one" }),
      "on-pods": annotated("on-pods", {}, { pods: AUTO }),
      off: annotated("off", { "reloader.stakater.com/auto": "false" }, { pods: AUTO }),
      none: annotated("none", { "example.com/auto": "true" }),
    };
    await shop.make(...Object.values(all));
    const made = named(
      "auto",
      "secret-auto",
      "configmap-auto",
      "listed",
      "pattern",
      "listed-config",
      "excluded",
      "on-pods",
    );
    await untilMade(team, made);
    assert.ok(Object.values(await shop.restarts()).every((count) => count === 0));
    await shop.restartedBy(() => shop.rotate("one"), ["auto", "secret-auto", "on-pods"], made);
    const byConfig = ["auto", "configmap-auto", "excluded", "on-pods"];
    await shop.restartedBy(() => shop.configure("config", "2"), byConfig, made);
    await shop.restartedBy(() => shop.rotate("beside"), ["listed", "pattern"], made);
    await shop.restartedBy(() => shop.configure("other", "2"), ["listed-config"], made);

    const mark = (path: string, annotations: object) => team.api.merge(path, { metadata: { annotations } });
    const match = { "reloader.stakater.com/match": "true" };
    const searched = [...made, ...named("search")];
    await shop.restartedBy(() => mark(`${team.path("v1", "secrets")}/one`, match), [], searched);
    await shop.restartedBy(() => mark(`${team.path("v1", "secrets")}/beside`, match), [], searched);
    await shop.restartedBy(() => shop.rotate("one"), ["auto", "secret-auto", "on-pods", "search"], searched);

    const ignore = { "reloader.stakater.com/ignore": "true" };
    const without = searched.filter((name) => !named("configmap-auto", "excluded").includes(name));
    await shop.restartedBy(() => mark(`${team.path("v1", "configmaps")}/config`, ignore), [], without);
    await eventually(async () => {
      const sources = (await madeIn(team)).flatMap(({ spec }) => spec.sources);
      assert.ok(sources.every(({ configMap }: AnyObject) => configMap?.name !== "config"));
    });
    await untilMade(team, without);
    await shop.restartedBy(() => shop.configure("config", "3"), [], without);
    await shop.restartedBy(() => shop.rotate("beside"), ["listed", "pattern"], without);
  });

  it("a workload with more sources than one binding may have restarts once for each of them", async () => {
    const shop = await newShop();
    const { team } = shop;
    const names = Array.from({ length: 20 }, (_, n) => `many-${n}`);
    await Promise.all(names.map((name) => shop.rotate(name)));
    await shop.make(annotated("core", listed("many-.*")));
    const made = ["reloader-deployment-core", "reloader-2-deployment-core"];
    const sourcesOf = (bindings: AnyObject[]) =>
      bindings.flatMap(({ spec }) => spec.sources.map((each: AnyObject) => each.secret.name)).sort();
    assert.deepEqual(sourcesOf(await untilMade(team, made)), names.toSorted());
    for (const name of names.slice(0, 4)) await shop.restartedBy(() => shop.rotate(name), ["core"], made);
    await shop.restartedBy(() => shop.rotate("many-20"), [], made);
    await eventually(async () => assert.equal(sourcesOf(await madeIn(team)).length, 21));
    // From now on, the binding has a baseline for the source.
    await untilMade(team, made);
    await shop.restartedBy(() => shop.rotate("many-20"), ["core"], made);
  });

  it("a source that is added, deleted or recreated unchanged restarts nothing, and one with a new value restarts", async () => {
    const shop = await newShop();
    const { team } = shop;
    await shop.make(annotated("core", listed("later")));
    const made = named("core");
    await untilMade(team, made);
    const path = `${team.path("v1", "secrets")}/later`;
    await shop.restartedBy(() => shop.rotate("later"), [], made);
    await eventually(async () =>
      assert.ok(
        (await madeIn(team))[0]?.status.rollout.digests["secret-later/*"] ??
          (await madeIn(team))[0]?.status.rollout.digests["secret-later/"],
      ),
    );
    await shop.restartedBy(() => shop.rotate("later"), ["core"], made);
    const { data } = await team.api.get(path);
    await shop.restartedBy(() => team.api.delete(path), [], made);
    const again = () => team.api.create(team.path("v1", "secrets"), { metadata: { name: "later" }, data });
    await shop.restartedBy(again, [], made);
    await shop.restartedBy(() => team.api.delete(path), [], made);
    await shop.restartedBy(() => shop.rotate("later"), ["core"], made);
  });

  it("labels restart nothing, and a workload without changes costs no request", async () => {
    const shop = await newShop();
    const { team } = shop;
    await shop.make(annotated("core", AUTO));
    const made = named("core");
    await untilMade(team, made);
    const label = (value: string) =>
      team.api.merge(`${team.path("v1", "secrets")}/one`, { metadata: { labels: { value } } });
    await shop.restartedBy(() => label("a"), [], made);
    const from = await auditLog().mark();
    await team.api.merge(shop.path("core"), { metadata: { labels: { touched: "true" } } });
    await shop.configure("unrelated", "1");
    await shop.restartedBy(() => shop.rotate("one"), ["core"], made);
    await loggedUntilNow(team);
    const asked = (await auditLog().since(from)).filter(
      ({ user, namespace, verb }) => user === CONTROLLER && namespace === team.namespace && verb !== "watch",
    );
    assert.deepEqual(
      asked.filter(({ resource }) => resource === "inlay.dev/secretbindings").map(({ verb, name }) => [verb, name]),
      [],
    );
    assert.deepEqual(
      asked.filter(({ resource, verb }) => resource === "apps/deployments" && verb !== "patch"),
      [],
    );
  });

  it("a pause-period delays the next restart of a Deployment, and the change is not lost", async () => {
    const shop = await newShop();
    const { team } = shop;
    const period = (length: string) => ({ "deployment.reloader.stakater.com/pause-period": length });
    await shop.make(
      annotated("core", { ...AUTO, ...period("1h") }),
      annotated("brief", { ...listed("one"), ...period("2s") }),
    );
    const made = named("core", "brief");
    await untilMade(team, made);
    const began = Date.now();
    await shop.rotate("one");
    for (const name of made) await shop.rolledOut(name, 1);
    await shop.rotate("one");
    await shop.configure("config", "2");
    await shop.until("reloader-deployment-core", "MinInterval");
    await eventually(async () => assert.equal((await shop.restarts())["brief"], 2), 30_000);
    assert.ok(Date.now() - began >= 2_000);
    assert.equal((await shop.restarts())["core"], 1);
    await team.api.merge(shop.path("core"), { metadata: { annotations: period("1s") } });
    await eventually(async () => assert.equal((await shop.restarts())["core"], 2), 30_000);
    await untilMade(team, made);
    assert.deepEqual(await shop.restarts(), { core: 2, brief: 2 });
  });

  it("invalid annotations are reported on the workload with a fix, and the valid ones still work", async () => {
    const shop = await newShop();
    const { team } = shop;
    const wrong = { "reloader.stakater.com/auto": "yes", ...listed("one,a[") };
    const pods = { "deployment.reloader.stakater.com/pause-period": "1h" };
    await shop.make(annotated("core", wrong, { pods }));
    await untilMade(team, named("core"));
    await eventually(async () => {
      const [pause = "", auto = "", reload = "", ...others] = (await warningsOn(team, "core")).sort();
      assert.match(pause, /^deployment\.reloader\.stakater\.com\/pause-period has no effect on the pod template/);
      assert.match(auto, /^reloader\.stakater\.com\/auto: "yes" .*"true"/);
      assert.match(reload, /^secret\.reloader\.stakater\.com\/reload: "a\["/);
      assert.deepEqual(others, []);
    });
    for (const _ of ["first", "without a pause"])
      await shop.restartedBy(() => shop.rotate("one"), ["core"], named("core"));
    assert.equal((await warningsOn(team, "core")).length, 3);
  });

  it("nothing happens where the configuration does not enable it", async () => {
    const shop = await newShop();
    const name = `off-${shop.team.namespace}`;
    await shop.team.api.create("/api/v1/namespaces", { metadata: { name } });
    const deployments = `/apis/apps/v1/namespaces/${name}/deployments`;
    const wrong = { ...AUTO, ...listed("a[") };
    await shop.team.api.create(deployments, annotated("core", wrong));
    await shop.make(annotated("core", wrong));
    await untilMade(shop.team, named("core"));
    await eventually(async () => assert.notDeepEqual(await warningsOn(shop.team, "core"), []));
    const bindings = await shop.team.api.get(`/apis/inlay.dev/v1alpha1/namespaces/${name}/secretbindings`);
    assert.deepEqual(bindings.items, []);
    const events = await shop.team.api.get(`/apis/events.k8s.io/v1/namespaces/${name}/events`);
    assert.deepEqual(
      events.items.filter(({ reason }: AnyObject) => reason === "InvalidAnnotation"),
      [],
    );
    await shop.team.api.delete(`/api/v1/namespaces/${name}`);
  });

  it("everything but status and events is requested as a separate account", async () => {
    const shop = await newShop();
    const { team } = shop;
    await shop.make(annotated("core", AUTO));
    await untilMade(team, named("core"));
    await shop.restartedBy(() => shop.rotate("one"), ["core"], named("core"));
    // Events are written in the background.
    await eventually(async () => assert.notDeepEqual(await team.events("reloader-deployment-core"), []));
    await loggedUntilNow(team);
    const all = (await auditLog().since(mark)).filter(
      ({ user, namespace }) => user === CONTROLLER && namespace === team.namespace,
    );
    const asItself = new Set(
      all.filter(({ as }) => as === undefined).map(({ verb, resource }) => `${verb} ${resource}`),
    );
    assert.deepEqual([...asItself].sort(), ["create events.k8s.io/events", "update inlay.dev/secretbindings/status"]);
    assert.deepEqual([...new Set(all.flatMap(({ as }) => as ?? []))], [RELOADER]);
    assert.ok(
      all.some(({ verb, resource, as }) => verb === "patch" && resource === "apps/deployments" && as === RELOADER),
    );
  });

  it("a kind that is served later is found, and restarts", async () => {
    const { team } = served;
    const made = ["reloader-rollout-app"];
    await untilMade(team, made, 60_000);
    await served.rotate("one");
    await eventually(async () => {
      const { spec } = await team.api.get(`${rolloutsPath(team)}/app`);
      assert.match(spec.template.metadata.annotations?.["inlay.dev/rollout"] ?? "", /^1-/);
    }, 30_000);
  });
});
