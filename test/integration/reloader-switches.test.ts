/**
 * Shows how the configuration selects namespaces, sources, kinds and keys for Reloader's annotations, and what Inlay adds to
 * workloads.
 */
import assert from "node:assert/strict";
import { annotated, listed, named, newShop, type Shop } from "../controller/annotated.ts";
import type { AnyObject } from "../controller/api.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { foundIn } from "../controller/leak-detector.ts";
import { installReloader, madeIn, RELOADER, reloading, removeReloader, untilMade } from "../controller/reloader.ts";
import { auditLog } from "../controller/shared.ts";

const AUTO = { "wave.pusher.com/update-on-config-change": "true" };
const PAUSED_AT = "deployment.reloader.stakater.com/paused-at";
const PAUSE = { "deployment.reloader.stakater.com/pause-period": "4s" };
const LAST = "reloader.stakater.com/last-reloaded-from";
const WATCHED = { watched: "true" };

describe("with Reloader's annotations restricted by the configuration", function () {
  this.timeout("2m");
  let controller: ControllerProcess;
  let mark: number;
  /** Has the labels that the configuration requires. */
  let shop: Shop;
  /** Has the labels too, and is excluded by its name. */
  let excepted: Shop;
  /** Has none of the labels. */
  let other: Shop;

  const label = ({ team }: Shop, reload: string | null) =>
    team.api.merge(`/api/v1/namespaces/${team.namespace}`, { metadata: { labels: { reload } } });
  const labelSource = ({ team }: Shop, plural: string, name: string, labels: object) =>
    team.api.merge(`${team.path("v1", plural)}/${name}`, { metadata: { labels } });

  before(async () => {
    await installReloader();
    [shop, excepted, other] = await Promise.all([newShop(), newShop(), newShop()]);
    await Promise.all([
      label(shop, "yes"),
      label(excepted, "yes"),
      shop.rotate("two"),
      ...[shop, excepted, other].map((each) => labelSource(each, "secrets", "one", WATCHED)),
      labelSource(shop, "configmaps", "config", WATCHED),
    ]);
    const { spec } = annotated("set", {});
    await shop.team.api.create(shop.team.path("apps/v1", "statefulsets"), {
      metadata: { name: "set", annotations: AUTO },
      spec: { selector: spec.selector, template: spec.template, serviceName: "set" },
    });
    await Promise.all([
      shop.make(
        annotated("core", AUTO),
        annotated("listing", listed("two,nowhere")),
        annotated("brief", { ...AUTO, ...PAUSE }),
        annotated("former", { "reloader.stakater.com/auto": "true" }),
      ),
      excepted.make(annotated("core", AUTO)),
      other.make(annotated("core", AUTO)),
    ]);
    mark = await auditLog().mark();
    controller = await reloading({
      namespaces: ["team-*"],
      exceptNamespaces: [excepted.team.namespace],
      namespaceSelector: { matchExpressions: [{ key: "reload", operator: "In", values: ["yes", "on"] }] },
      sourceSelector: { matchLabels: WATCHED },
      ignoreKinds: ["ConfigMap", "StatefulSet"],
      annotations: { auto: Object.keys(AUTO)[0] },
      recordOnWorkloads: true,
    });
    await controller.start();
  });
  after(async () => {
    await controller?.stop();
    await removeReloader();
    assert.deepEqual(foundIn(controller.output), []);
  });

  it("a binding exists for each selected workload, with only the selected kind of source", async () => {
    const made = await untilMade(shop.team, named("core", "listing", "brief"));
    const sources = Object.fromEntries(
      made.map(({ metadata, spec }) => [metadata.name, spec.sources.map((each: AnyObject) => each.name)]),
    );
    // The Secret `two` has no such label, and a missing Secret may get it later.
    assert.deepEqual(sources, {
      [named("core").join()]: ["secret-one"],
      [named("brief").join()]: ["secret-one"],
      [named("listing").join()]: ["secret-nowhere"],
    });
    const watched = (await auditLog().watchesSince(mark)).filter(({ as }) => as === RELOADER);
    assert.ok(watched.some(({ resource }) => resource === "secrets"));
    assert.deepEqual(
      watched.filter(({ resource }) => ["configmaps", "apps/statefulsets"].includes(resource)),
      [],
    );
  });

  it("workloads show by which source they restarted last, in the write that restarts them", async () => {
    const began = Math.floor(Date.now() / 1000);
    await shop.rotate("two");
    await shop.rotate("one");
    await eventually(async () => assert.deepEqual(await shop.restarts(), { core: 1, brief: 1, listing: 0, former: 0 }));
    const { [LAST]: last = "", "inlay.dev/rollout": stamp } = await shop.annotations("core");
    const { observedAt, ...record } = JSON.parse(last);
    assert.deepEqual(record, {
      type: "SECRET",
      name: "one",
      namespace: shop.team.namespace,
      hash: stamp,
      containerRefs: ["app"],
    });
    assert.ok(observedAt >= began && observedAt <= Date.now() / 1000);
  });

  it("a Deployment with a pause-period shows since when its restart waits, and no longer when the restart is done", async () => {
    const paused = async () => (await shop.team.api.get(shop.path("brief"))).metadata.annotations[PAUSED_AT];
    await shop.run(["brief"]);
    await shop.rolledOut(named("brief").join(), 1);
    await eventually(async () => assert.equal(await paused(), undefined));
    await shop.rotate("one");
    await eventually(async () => assert.match((await paused()) ?? "", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/));
    const { lastStartTime } = (await shop.team.binding(named("brief").join())).status.rollout;
    assert.equal(await paused(), `${lastStartTime.slice(0, 19)}Z`);
    await eventually(async () => assert.equal(await paused(), undefined));
    await shop.rolledOut(named("brief").join(), 2);
    assert.deepEqual(await shop.restarts(), { core: 2, brief: 2, listing: 0, former: 0 });
  });

  it("a source is used from the moment it has the labels, which restarts nothing", async () => {
    await labelSource(shop, "secrets", "two", WATCHED);
    await eventually(async () => {
      const { spec, status } = await shop.team.binding(named("listing").join());
      assert.ok(spec.sources.some(({ name }: AnyObject) => name === "secret-two"));
      assert.ok(status.rollout.digests["secret-two/*"] ?? status.rollout.digests["secret-two/"]);
    });
    await shop.restartedBy(() => shop.rotate("two"), ["listing"], named("core", "listing", "brief"));
  });

  it("a namespace is used while it has the labels, and a change in between restarts once", async () => {
    assert.deepEqual([await madeIn(excepted.team), await madeIn(other.team)], [[], []]);
    await label(other, "on");
    await untilMade(other.team, named("core"));
    await label(other, null);
    const { status } = await other.team.until(named("core").join(), "OutOfScope");
    assert.match(status.conditions[0].message, /kubectl delete secretbinding/);
    await other.rotate("one");
    await controller.idle();
    assert.deepEqual(await other.restarts(), { core: 0 });
    await other.restartedBy(() => label(other, "yes"), ["core"], named("core"));
    assert.deepEqual(await madeIn(excepted.team), []);
    assert.deepEqual(await excepted.restarts(), { core: 0 });
  });
});
