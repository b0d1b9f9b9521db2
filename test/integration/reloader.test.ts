/** A Reloader user changes nothing but the controller: what restarts by his annotations, when, how often, and as whom. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { AUTO, annotated, listed, named, newShop, warningsOn } from "../controller/annotated.ts";
import type { AnyObject } from "../controller/api.ts";
import { inlayJson } from "../controller/cli.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { foundIn } from "../controller/hunted.ts";
import { refuse } from "../controller/refusing.ts";
import {
  installReloader,
  madeIn,
  RELOADER,
  reloading,
  removeReloader,
  untilMade,
  whileReloading,
} from "../controller/reloader.ts";
import { CONTROLLER, loggedUntilNow } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { pause, type Team } from "../controller/team.ts";

const ROLLOUTS = { group: "argoproj.io", version: "v1alpha1", plural: "rollouts", kind: "Rollout" };
const LATER = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/addedLater";
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

describe("where Reloader's annotations are understood", function () {
  this.timeout("3m");
  let controller: ControllerProcess;
  let mark: number;

  before(async () => {
    await installReloader();
    mark = await auditLog().mark();
    controller = await reloading({ namespaces: ["team-*"] });
    await controller.start();
  });
  after(async () => {
    await controller?.stop();
    await removeReloader();
    await removeRollouts();
    assert.deepEqual(foundIn(controller.output), []);
  });

  it("what restarts is what each of them says, for a Secret and a ConfigMap alike", async () => {
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
    await shop.restartedBy(() => shop.configure("config", "3"), [], without);
    await shop.restartedBy(() => shop.rotate("beside"), ["listed", "pattern"], without);
  });

  it("StatefulSets, DaemonSets and Argo Rollouts restart too, and a CronJob has its next Job by it, without a stray one", async () => {
    const shop = await newShop();
    const { team } = shop;
    await installRollouts(team);
    const { template } = annotated("app", {}).spec;
    const metadata = { name: "app", annotations: AUTO };
    const spec = { selector: { matchLabels: { app: "app" } }, template };
    const paths = {
      deployment: team.path("apps/v1", "deployments"),
      statefulset: team.path("apps/v1", "statefulsets"),
      daemonset: team.path("apps/v1", "daemonsets"),
      cronjob: team.path("batch/v1", "cronjobs"),
      rollout: team.path("argoproj.io/v1alpha1", "rollouts"),
    };
    await team.api.create(paths.deployment, { metadata, spec });
    const job = { template: { ...template, spec: { ...template.spec, restartPolicy: "Never" } } };
    await team.api.create(paths.statefulset, { metadata, spec: { ...spec, serviceName: "app" } });
    await team.api.create(paths.daemonset, { metadata, spec });
    await team.api.create(paths.cronjob, { metadata, spec: { schedule: "0 0 1 1 *", jobTemplate: { spec: job } } });
    const rollout = (name: string, strategy: object = {}) =>
      team.api.create(paths.rollout, {
        apiVersion: "argoproj.io/v1alpha1",
        kind: "Rollout",
        metadata: { name, annotations: { ...AUTO, ...strategy } },
        spec: { ...spec, replicas: 0 },
      });
    await rollout("app");
    await rollout("by-time", { "reloader.stakater.com/rollout-strategy": "restart" });
    const made = ["reloader-rollout-by-time", ...Object.keys(paths).map((kind) => `reloader-${kind}-app`)];
    // A kind may be served from now on: it is found within half a minute.
    await eventually(async () => assert.equal((await madeIn(team)).length, made.length), 60_000);
    await eventually(async () => {
      for (const { metadata, status } of await madeIn(team)) assert.ok(status?.rollout, metadata.name);
    });
    // What is refused is looked at again: it may be another one by now.
    const lift = await refuse(
      team,
      `refuses-${team.namespace}`,
      { operations: ["UPDATE"], apiGroups: ["apps", "batch", "argoproj.io"], resources: ["*"] },
      `request.userInfo.username != "${RELOADER}"`,
      () => team.api.as(RELOADER).dryRun.merge(shop.path("app"), { metadata: { annotations: { touched: "true" } } }),
    );
    await shop.rotate("one");
    for (const name of made)
      await eventually(async () => {
        const reasons = (await team.binding(name)).status?.conditions.map(({ reason }: AnyObject) => reason);
        assert.ok(reasons?.includes("Rejected"), `${name}: ${reasons}`);
      }, 30_000);
    await lift();
    for (const [kind, path] of Object.entries(paths))
      await eventually(async () => {
        const { spec } = await team.api.get(`${path}/app`);
        const { annotations } = (spec.jobTemplate?.spec ?? spec).template.metadata;
        assert.match(annotations?.["inlay.dev/rollout"] ?? "", /^1-/, kind);
      }, 60_000);
    await eventually(async () => {
      const { spec } = await team.api.get(`${paths.rollout}/by-time`);
      assert.ok(Date.parse(spec.restartAt) > Date.now() - 60_000);
      assert.deepEqual(spec.template.metadata.annotations ?? {}, {});
    });
    assert.deepEqual((await team.api.get(team.path("batch/v1", "jobs"))).items, []);
  });

  it("there is a binding for each workload, that kubectl shows, and it goes with the annotation or the workload", async () => {
    const shop = await newShop();
    const { team } = shop;
    const jobs = annotated("jobs", AUTO);
    jobs.spec.replicas = 2;
    await shop.make(annotated("core", AUTO), jobs);
    const [core] = await untilMade(team, named("core", "jobs"));
    const { uid } = (await team.api.get(shop.path("core"))).metadata;
    assert.deepEqual(core?.metadata.ownerReferences, [
      { apiVersion: "apps/v1", kind: "Deployment", name: "core", uid },
    ]);
    assert.deepEqual(core?.spec.sources, [
      { name: "secret-one", optional: true, secret: { name: "one" } },
      { name: "configmap-config", optional: true, configMap: { name: "config" } },
    ]);
    await team.api.merge(shop.path("core"), { metadata: { annotations: { "reloader.stakater.com/auto": null } } });
    await untilMade(team, named("jobs"));
    await shop.restartedBy(() => shop.rotate("one"), ["jobs"], named("jobs"));
    await eventually(async () => {
      const reasons = (await team.events("jobs")).map(({ reason }) => reason);
      assert.ok(reasons.includes("Restarted") && reasons.includes("NoPodDisruptionBudget"), reasons.join());
    });
    await team.api.delete(shop.path("jobs"));
    await untilMade(team, []);
  });

  it("what somebody makes of such a binding is put right, and one that is deleted is made again", async () => {
    const shop = await newShop();
    const { team } = shop;
    await shop.rotate("beside");
    await shop.make(annotated("core", AUTO));
    const [name = ""] = named("core");
    const [before] = await untilMade(team, [name]);
    const path = team.bindingPath(name);
    const edits = [
      { spec: { sources: [{ secret: { name: "beside" } }] } },
      { spec: { suspend: true } },
      { metadata: { labels: { "inlay.dev/made-for": null }, ownerReferences: null } },
    ];
    for (const edit of edits) {
      await team.api.merge(path, edit);
      await eventually(async () => {
        const now = await team.api.get(path);
        assert.deepEqual(now.spec, before?.spec);
        assert.deepEqual(now.metadata.labels, before?.metadata.labels);
        assert.deepEqual(now.metadata.ownerReferences, before?.metadata.ownerReferences);
      });
    }
    await untilMade(team, [name]);
    await team.api.delete(path);
    await eventually(async () => assert.notEqual((await team.api.get(path)).metadata.uid, before?.metadata.uid));
    await untilMade(team, [name]);
    await shop.restartedBy(() => shop.rotate("one"), ["core"], [name]);
    // He may say more of it.
    await team.api.merge(path, { metadata: { annotations: { "example.com/note": "mine" } } });
    await shop.restartedBy(() => shop.rotate("one"), ["core"], [name]);
    assert.equal((await team.api.get(path)).metadata.annotations["example.com/note"], "mine");
  });

  it("inlay explain tells of such a binding what it tells of others, and as whom it acts", async () => {
    const shop = await newShop();
    const { team } = shop;
    await shop.make(annotated("core", AUTO));
    await untilMade(team, named("core"));
    await shop.rotate("one");
    await shop.rolledOut("reloader-deployment-core", 1);
    const args = ["explain", "reloader-deployment-core", "--namespace", team.namespace];
    const { json, text } = await inlayJson(controlPlane().kubeconfigFile, ...args);
    assert.match(text, /ServiceAccount inlay-reloader {2}of Inlay's own namespace/);
    assert.deepEqual(
      json.sources.map(({ source }: AnyObject) => source),
      ["secret-one", "configmap-config"],
    );
    assert.equal(json.advice.command, undefined);
    const trace = ["trace", "one", "--namespace", team.namespace];
    const traced = await inlayJson(controlPlane().kubeconfigFile, ...trace);
    assert.match(traced.text, /reloader-deployment-core/);
  });

  it("a workload with more sources than a binding may have restarts for each of them, once", async () => {
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
    await shop.restartedBy(() => shop.rotate("many-20"), ["core"], made);
  });

  it("a source that comes, goes, or is as it was restarts nothing; one that has changed meanwhile does", async () => {
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

  it("labels restart nothing, and what is settled costs no request", async () => {
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

  it("a pause-period keeps a Deployment from restarting again within it, and the change is not lost", async () => {
    const shop = await newShop();
    const { team } = shop;
    await shop.make(annotated("core", { ...AUTO, "deployment.reloader.stakater.com/pause-period": "8s" }));
    const made = named("core");
    await untilMade(team, made);
    const began = Date.now();
    await shop.rotate("one");
    await shop.rolledOut("reloader-deployment-core", 1);
    await shop.rotate("one");
    await shop.configure("config", "2");
    await shop.until("reloader-deployment-core", "MinInterval");
    assert.equal((await shop.restarts())["core"], 1);
    await eventually(async () => assert.equal((await shop.restarts())["core"], 2), 30_000);
    assert.ok(Date.now() - began >= 8_000);
    await untilMade(team, made);
    assert.equal((await shop.restarts())["core"], 2);
  });

  it("annotations that say nothing are told on the workload, with what to do, and the others hold", async () => {
    const shop = await newShop();
    const { team } = shop;
    const wrong = { "reloader.stakater.com/auto": "yes", ...listed("one,a[") };
    await shop.make(annotated("core", wrong));
    await untilMade(team, named("core"));
    await eventually(async () =>
      assert.deepEqual((await warningsOn(team, "core")).sort(), [
        'reloader.stakater.com/auto: "yes" is neither true nor false; write "true"',
        'secret.reloader.stakater.com/reload: "a[" is no regular expression; mend it',
      ]),
    );
    await shop.restartedBy(() => shop.rotate("one"), ["core"], named("core"));
    assert.equal((await warningsOn(team, "core")).length, 2);
  });

  it("somebody's own binding of such a name is left alone, which is told on the workload", async () => {
    const shop = await newShop();
    const { team } = shop;
    const sources = [{ secret: { name: "one" } }];
    const own = await team.bind("reloader-deployment-core", {
      sources,
      rollout: { targets: [{ kind: "Deployment", name: "x" }] },
    });
    await shop.make(annotated("core", AUTO));
    await eventually(async () =>
      assert.match((await warningsOn(team, "core")).join(), /is a binding of somebody's own/),
    );
    assert.deepEqual((await team.api.get(team.bindingPath("reloader-deployment-core"))).spec, own.spec);
    // Another one may have the name before it could be seen that it is free.
    await team.api.delete(team.bindingPath("reloader-deployment-core"));
    await untilMade(team, named("core"));
  });

  it("the CRD of another version, with a default more, keeps none from restarting, and has nothing written for ever", async () => {
    const shop = await newShop();
    const { team } = shop;
    const crd = `${CRDS}/secretbindings.inlay.dev`;
    const field = { type: "string", default: "new", description: "A field of another version." };
    await shop.make(annotated("core", AUTO));
    await untilMade(team, named("core"));
    await team.api.jsonPatch(crd, [{ op: "add", path: LATER, value: field }]);
    try {
      await eventually(async () => assert.equal((await madeIn(team))[0]?.spec.addedLater, "new"));
      await shop.make(annotated("next", AUTO));
      const made = named("core", "next");
      await untilMade(team, made);
      await shop.restartedBy(() => shop.rotate("one"), ["core", "next"], made);
      await controller.stop();
      // Once for each, to see what becomes of it.
      await shop.restartedBy(() => controller.start(), [], made);
      await shop.restartedBy(() => shop.rotate("one"), ["core", "next"], made);
      const from = await auditLog().mark();
      await shop.restartedBy(() => shop.rotate("one"), ["core", "next"], made);
      const writes = (await auditLog().controllerWritesSince(from)).filter(
        ({ namespace, resource, verb }) =>
          namespace === team.namespace && resource === "inlay.dev/secretbindings" && verb === "update",
      );
      assert.deepEqual(writes, []);
    } finally {
      await team.api.jsonPatch(crd, [{ op: "remove", path: LATER }]);
    }
    await eventually(async () => assert.equal((await madeIn(team))[0]?.spec.addedLater, undefined));
    await shop.restartedBy(() => shop.rotate("one"), ["core", "next"], named("core", "next"));
  });

  it("a binding that can't be made is told on the workload, and keeps none that is to go", async () => {
    const shop = await newShop();
    const { team } = shop;
    await shop.make(annotated("core", AUTO), annotated("stays", AUTO));
    await untilMade(team, named("core", "stays"));
    const binding = { apiVersion: "inlay.dev/v1alpha1", kind: "SecretBinding", metadata: { name: "x-refused" } };
    const spec = { serviceAccountName: "inlay", sources: [{ secret: { name: "one" } }], rollout: { targets: [] } };
    const lift = await refuse(
      team,
      `refuses-${team.namespace}`,
      { operations: ["CREATE"], apiGroups: ["inlay.dev"], resources: ["secretbindings"] },
      `!object.metadata.name.endsWith("refused")`,
      () => team.api.dryRun.create(team.path("inlay.dev/v1alpha1", "secretbindings"), { ...binding, spec }),
    );
    await shop.make(annotated("refused", AUTO));
    const notes = async () =>
      (await team.events("refused")).filter(({ reason }) => reason === "BindingNotMade").map(({ note }) => note);
    await eventually(async () => assert.match((await notes()).join(), /reloader-deployment-refused could not be made/));
    await team.api.merge(shop.path("core"), { metadata: { annotations: { "reloader.stakater.com/auto": null } } });
    await untilMade(team, named("stays"));
    await shop.restartedBy(() => shop.rotate("one"), ["stays"], named("stays"));
    assert.equal((await notes()).length, 1);
    await lift();
    await untilMade(team, named("refused", "stays"), 60_000);
  });

  it("nothing restarts when the controller does, nothing is written, and what changed meanwhile restarts once", async () => {
    const shop = await newShop();
    const { team } = shop;
    await shop.make(annotated("core", AUTO), annotated("still", listed("beside")));
    const made = named("core", "still");
    await untilMade(team, made);
    await controller.stop();
    const mark = await auditLog().mark();
    await controller.start();
    // A new one is made once all has been looked at that was there.
    await shop.make(annotated("next", AUTO));
    await untilMade(team, [...made, ...named("next")]);
    const writes = (await auditLog().controllerWritesSince(mark)).filter(
      ({ namespace, resource, name }) =>
        namespace === team.namespace && !name.endsWith("-next") && !resource.startsWith("events"),
    );
    assert.deepEqual(
      writes
        .filter(({ verb, name }) => !(verb === "create" && name === ""))
        .map(({ verb, resource, name }) => [verb, resource, name]),
      [],
    );
    assert.deepEqual(await shop.restarts(), { core: 0, still: 0, next: 0 });
    await controller.stop();
    await shop.rotate("one");
    await shop.rotate("one");
    await shop.restartedBy(() => controller.start(), ["core", "next"], [...made, ...named("next")]);
  });

  it("nothing is done where the installation does not say so", async () => {
    const shop = await newShop();
    const name = `off-${shop.team.namespace}`;
    await shop.team.api.create("/api/v1/namespaces", { metadata: { name } });
    const deployments = `/apis/apps/v1/namespaces/${name}/deployments`;
    await shop.team.api.create(deployments, annotated("core", { ...AUTO, ...listed("a[") }));
    await shop.make(annotated("core", AUTO));
    await untilMade(shop.team, named("core"));
    const bindings = await shop.team.api.get(`/apis/inlay.dev/v1alpha1/namespaces/${name}/secretbindings`);
    assert.deepEqual(bindings.items, []);
    const events = await shop.team.api.get(`/apis/events.k8s.io/v1/namespaces/${name}/events`);
    assert.deepEqual(
      events.items.filter(({ reason }: AnyObject) => reason === "InvalidAnnotation"),
      [],
    );
  });

  it("all is done as an account of its own, but for status and events", async () => {
    const shop = await newShop();
    const { team } = shop;
    await shop.make(annotated("core", AUTO));
    await untilMade(team, named("core"));
    await shop.restartedBy(() => shop.rotate("one"), ["core"], named("core"));
    // They are written in the background.
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
});

describe("where Reloader's annotations are understood in one namespace", function () {
  this.timeout("2m");

  it("the account has its rights there alone, and all workloads restart that do not say no", async () => {
    const [shop, other] = [await newShop(), await newShop()];
    await whileReloading([shop.team.namespace], { autoReloadAll: true }, async (controller) => {
      await controller.start();
      await shop.make(annotated("core", {}), annotated("not", { "reloader.stakater.com/auto": "false" }));
      await other.make(annotated("core", AUTO));
      await untilMade(shop.team, named("core"));
      await other.rotate("one");
      await shop.restartedBy(() => shop.rotate("one"), ["core"], named("core"));
      await pause(500);
      assert.deepEqual(await madeIn(other.team), []);
      assert.deepEqual(await other.restarts(), { core: 0 });
      assert.ok(!controller.output.includes("can't be read"));
    });
  });

  it("and are switched off, nothing restarts any more, and what was made says how to delete it", async () => {
    const shop = await newShop();
    const { team } = shop;
    await installReloader(team.namespace);
    const [on, off] = [
      await reloading({ namespaces: [team.namespace] }),
      await reloading({ namespaces: ["elsewhere"] }),
    ];
    try {
      await on.start();
      await shop.make(annotated("core", AUTO));
      await untilMade(team, named("core"));
      await on.stop();
      await off.start();
      const { status } = await team.until("reloader-deployment-core", "OutOfScope");
      const command = `kubectl delete secretbinding reloader-deployment-core -n ${team.namespace}`;
      assert.ok(status.conditions[0].message.endsWith(command));
      const requests = await auditLog().mark();
      await shop.rotate("one");
      await pause(1_000);
      await loggedUntilNow(team);
      const asked = (await auditLog().since(requests)).filter(
        ({ user, namespace, resource }) =>
          user === CONTROLLER && namespace === team.namespace && !resource.startsWith("events"),
      );
      assert.deepEqual(asked, []);
      assert.deepEqual(await shop.restarts(), { core: 0 });
      // What changed while it was off restarts once.
      await off.stop();
      await shop.restartedBy(() => on.start(), ["core"], named("core"));
    } finally {
      await on.stop();
      await off.stop();
      await removeReloader();
    }
  });

  it("and lacks them somewhere, the log says what is lacking, and nothing is taken for gone", async () => {
    const shop = await newShop();
    const rolebinding = `/apis/rbac.authorization.k8s.io/v1/namespaces/${shop.team.namespace}/rolebindings/inlay-reloader`;
    await whileReloading([shop.team.namespace], {}, async (controller) => {
      await controller.start();
      await shop.make(annotated("core", AUTO));
      const [made] = await untilMade(shop.team, named("core"));
      const binding = await shop.team.api.get(rolebinding);
      await controller.stop();
      await shop.team.api.delete(rolebinding);
      await controller.start();
      await eventually(() =>
        assert.match(controller.output, /can't be read; apply deploy\/manifests\/optional\/reloader\.yaml/),
      );
      assert.deepEqual(
        (await madeIn(shop.team)).map(({ metadata }) => metadata.uid),
        [made?.metadata.uid],
      );
      const { resourceVersion: _r, uid: _u, ...metadata } = binding.metadata;
      await shop.team.api.create(rolebinding.replace(/\/[^/]+$/, ""), { ...binding, metadata });
      await shop.restartedBy(() => shop.rotate("one"), ["core"], named("core"));
    });
  });
});

/** As Argo serves it, as far as it matters here; nobody rolls one out, and without replicas none has to be. */
async function installRollouts({ api }: Team): Promise<void> {
  const { group, version, plural, kind } = ROLLOUTS;
  if (await api.find(`${CRDS}/${plural}.${group}`)) return;
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  await api.create(CRDS, {
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { kind, listKind: `${kind}List`, plural, singular: "rollout" },
      versions: [{ name: version, served: true, storage: true, schema, subresources: { status: {} } }],
    },
  });
  await eventually(async () => assert.ok(await api.find(`/apis/${group}/${version}/${plural}`)));
}

async function removeRollouts(): Promise<void> {
  await controlPlane().kubectl("delete", "crd", `${ROLLOUTS.plural}.${ROLLOUTS.group}`, "--ignore-not-found");
}
