/**
 * Shows that a workload restarts once for one change of a Secret, by several bindings, a commit, or a user. If it is not
 * certain that its pods are younger than the change, it restarts.
 */
import assert from "node:assert/strict";
import { AUTO, annotated, named, newShop, type Shop } from "../controller/annotated.ts";
import type { AnyObject } from "../controller/api.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { foundIn, secretText } from "../controller/leak-detector.ts";
import { installReloader, reloading, removeReloader } from "../controller/reloader.ts";
import { createNamespace, type Rule } from "../controller/test-namespace.ts";
import { deployment, rolloutRules } from "../controller/workloads.ts";

const STAMP = "inlay.dev/rollout";
const OTHER = "example.com/restarted-at";
const REVISIONS = ["replicasets", "controllerrevisions"];

const newTeam = async (rules: Rule[] = rolloutRules): Promise<Shop> =>
  newShop(await createNamespace({ rules, controller: false }));

const ofSecret = (name: string, rollout: object) => ({
  sources: [{ secret: { name } }],
  rollout: { consumersOf: [name], ...rollout },
});

/** Changes the pod template as a release does. */
const release = (shop: Shop, name: string, kind = "deployments") =>
  shop.team.api.merge(`${shop.team.path("apps/v1", kind)}/${name}`, {
    spec: { template: { metadata: { labels: { release: secretText("release").slice(-8) } } } },
  });

/** Waits until the binding has events about that number of workloads that needed no restart, and returns their notes. */
const notNeeded = (shop: Shop, binding: string, count: number): Promise<string[]> =>
  eventually(async () => {
    const found = (await shop.team.events(binding)).filter(({ reason }) => reason === "RestartNotNeeded");
    assert.equal(found.length, count);
    return found.map(({ note }) => note);
  });

describe("one change of a Secret", function () {
  this.timeout("3m");
  let controller: ControllerProcess;

  before(async () => {
    await installReloader();
    controller = await reloading({ namespaces: ["team-*"], debounce: "1s" });
    await controller.start();
  });
  after(async () => {
    await controller?.stop();
    await removeReloader();
    assert.deepEqual(foundIn(controller.output), []);
  });

  it("restarts a workload once for Reloader's annotation and a binding, in either order and with different stamps", async () => {
    const shop = await newTeam();
    const { team } = shop;
    await shop.make(annotated("core", AUTO), annotated("web", AUTO), annotated("jobs", AUTO));
    const last = { first: {}, same: { debounce: "1s" }, last: { debounce: "3s" } };
    for (const [name, pace] of Object.entries(last)) await team.bind(name, ofSecret("one", pace));
    await team.bind("other", ofSecret("one", { debounce: "2s", stamp: { annotation: OTHER } }));
    const all = [...Object.keys(last), "other", ...named("core", "web", "jobs")];
    for (const each of all) await shop.rolledOut(each, 0);
    await shop.rotate("one");
    for (const each of all) await shop.rolledOut(each, 1);
    assert.deepEqual(await shop.restarts(), { core: 1, web: 1, jobs: 1 });
    await notNeeded(shop, "last", 3);
    for (const name of ["core", "web", "jobs"]) {
      const restarted = (await team.events(name)).filter(({ reason }) => reason === "Restarted");
      assert.equal(restarted.length, 1, JSON.stringify(restarted));
    }
  });

  it("restarts a workload once for Reloader's annotation and the binding that writes what its pods read", async () => {
    const shop = await newTeam([
      ...rolloutRules,
      { apiGroups: [""], resources: ["secrets"], verbs: ["create", "patch", "delete"] },
    ]);
    const { team } = shop;
    const fields = [{ path: "data.token", from: { source: "one", key: "token" } }];
    await team.bind("copies", {
      sources: [{ secret: { name: "one" } }],
      targets: [{ apiVersion: "v1", kind: "Secret", name: "copy", create: { manifest: {} }, fields }],
      rollout: { consumersOfTargets: true, debounce: "4s", stamp: { annotation: OTHER } },
    });
    await shop.rolledOut("copies", 0);
    const core = annotated("core", AUTO);
    core.spec.template.spec.containers[0].envFrom = [{ secretRef: { name: "copy" } }];
    await shop.make(core);
    for (const each of ["copies", ...named("core")]) await shop.rolledOut(each, 0);
    await shop.rotate("one");
    for (const each of [...named("core"), "copies"]) await shop.rolledOut(each, 1);
    assert.deepEqual(await shop.restarts(), { core: 1 });
    await notNeeded(shop, "copies", 1);
  });

  it("restarts a workload once although one of the two is suspended, and the controller starts again", async () => {
    const shop = await newTeam();
    const { team } = shop;
    await shop.make(annotated("core", AUTO));
    await team.bind("late", ofSecret("one", { stamp: { annotation: OTHER } }));
    for (const each of ["late", ...named("core")]) await shop.rolledOut(each, 0);
    await team.api.merge(team.bindingPath("late"), { spec: { suspend: true } });
    await team.until("late", "Suspended");
    await shop.rotate("one");
    await shop.rolledOut(named("core")[0] ?? "", 1);
    await controller.stop();
    await controller.start();
    await team.api.merge(team.bindingPath("late"), { spec: { suspend: false } });
    await shop.rolledOut("late", 1);
    assert.deepEqual(await shop.restarts(), { core: 1 });
    const [note = ""] = await notNeeded(shop, "late", 1);
    assert.match(
      note,
      /^Deployment team-\d+\/core is not restarted: its present pods are younger than the change of one\//,
    );
  });

  it("restarts no workload whose pod template changes after it, also while that rolls out or no controller runs", async () => {
    const shop = await newTeam();
    const { team } = shop;
    const sets = ["statefulsets", "daemonsets"];
    for (const name of ["slow", "web", "earlier", "undone"]) await shop.rotate(name);
    await shop.make(annotated("slow", {}, { spec: {} }), deployment("web", { envFrom: ["web"] }) as AnyObject);
    for (const name of ["earlier", "undone"]) await shop.make(deployment(name, { envFrom: [name] }) as AnyObject);
    for (const kind of sets) {
      const { selector, template } = (deployment(kind, { envFrom: ["web"] }) as AnyObject).spec;
      const more = kind === "statefulsets" ? { serviceName: kind, replicas: 1 } : {};
      await team.api.create(team.path("apps/v1", kind), {
        // Reloader's annotation too: its binding has an account of its own.
        metadata: { name: kind, annotations: kind === "statefulsets" ? AUTO : {} },
        spec: { selector, template, ...more },
      });
    }
    const reloads = `${team.path("inlay.dev/v1alpha1", "secretbindings")}?labelSelector=inlay.dev/generated-for=reloader`;
    const generated = await eventually(async () => {
      const found = (await team.api.get(reloads)).items.find(({ status }: AnyObject) => status?.rollout !== undefined);
      assert.ok(found !== undefined);
      return found.metadata.name as string;
    });
    for (const name of ["web", "earlier", "undone"]) await team.bind(name, ofSecret(name, {}));
    await team.bind("slow", ofSecret("one", { debounce: "4s" }));
    for (const name of ["slow", "web", "earlier", "undone"]) await shop.rolledOut(name, 0);

    // Its pods are not available for some seconds, so that its first release is not complete when the second one begins.
    await team.api.merge(shop.path("slow"), { spec: { minReadySeconds: 3 } });
    await release(shop, "slow");
    await eventually(async () => assert.equal((await shop.restarts())["slow"], 1));
    await shop.rotate("one");
    await release(shop, "slow");
    await shop.rolledOut("slow", 1);
    assert.equal((await shop.restarts())["slow"], 2);

    await release(shop, "undone");
    await shop.run(["undone"]);
    await controller.stop();
    await release(shop, "earlier");
    await eventually(async () => assert.equal((await shop.restarts())["earlier"], 1));
    for (const name of ["web", "earlier", "undone"]) await shop.rotate(name);
    await release(shop, "web");
    for (const kind of sets) await release(shop, kind, kind);
    await shop.undo("undone");
    await shop.run(["web", "undone"]);
    await controller.start();
    for (const name of ["web", "earlier", "undone"]) await shop.rolledOut(name, 1, 60_000);
    const { web, earlier, undone } = await shop.restarts();
    // The first ReplicaSet of the undone release has pods with the former value, as far as the controller knows.
    assert.deepEqual({ web, earlier, undone }, { web: 1, earlier: 2, undone: 3 });
    for (const kind of sets) {
      const { spec } = await team.api.get(`${team.path("apps/v1", kind)}/${kind}`);
      assert.equal(spec.template.metadata.annotations?.[STAMP], undefined, kind);
    }
    await notNeeded(shop, "web", 3);
    await notNeeded(shop, generated, 1);
  });

  it("restarts a workload once more if the account may not list its ReplicaSets", async () => {
    const shop = await newTeam(
      rolloutRules.filter(({ resources }) => !resources.some((each) => REVISIONS.includes(each))),
    );
    const { team } = shop;
    await shop.make(deployment("web", { envFrom: ["one"] }) as AnyObject);
    await team.bind("web", ofSecret("one", {}));
    await shop.rolledOut("web", 0);
    await controller.stop();
    await shop.rotate("one");
    await release(shop, "web");
    await controller.start();
    await shop.rolledOut("web", 1);
    assert.deepEqual(await shop.restarts(), { web: 2 });
  });
});
