/** Reloader's annotations in single namespaces: what is done in which of them, as the installation and the account's rights say. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { AUTO, annotated, named, newShop, type Shop, warningsOn } from "../controller/annotated.ts";
import { CLASS_AUTO, mounting, newStore, sourcesOf } from "../controller/annotated-classes.ts";
import { BINDING, JOB, lookedAt, newJobShop } from "../controller/annotated-jobs.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import type { AuditedRequest } from "../controller/audit.ts";
import { CLASS_GROUP, installClasses } from "../controller/classes.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { foundIn } from "../controller/hunted.ts";
import { ended, jobOf, newJob } from "../controller/jobs.ts";
import {
  allowJobs,
  bindRole,
  installReloader,
  madeIn,
  RELOADER,
  reloading,
  removeReloader,
  untilMade,
} from "../controller/reloader.ts";
import { CONTROLLER, loggedUntilNow } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";

const CLASSES = `${CLASS_GROUP}/secretproviderclasses`;
const ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
/** That of the account as it was before it knew of classes. */
const FORMER_ROLE = "inlay-reloader-former";

const rolebindings = ({ team }: Shop) => team.path("rbac.authorization.k8s.io/v1", "rolebindings");
const namespaceOf = ({ team }: Shop) => team.namespace;

/** Which namespaces the log says can't be read. */
const unreadIn = ({ output }: ControllerProcess) =>
  new Set(
    output.split("\n").flatMap((line) => {
      if (!/can't be read; apply deploy\/manifests\/optional\/reloader\.yaml/.test(line)) return [];
      return [JSON.parse(line).namespace as string];
    }),
  );

describe("where Reloader's annotations are understood in single namespaces", function () {
  this.timeout("3m");
  let api: Api;
  /** Restarts all workloads that do not say no, and Jobs. */
  let first: ControllerProcess;
  /** Restarts none of those, and is not for all of those namespaces. */
  let second: ControllerProcess;
  /** In the namespaces of both. */
  let shop: Shop;
  /** In those of neither. */
  let outside: Shop;
  /** In those of the first alone. */
  let leaving: Shop;
  /** Its account loses its rights. */
  let losing: Shop;
  let jobs: Shop;
  /** Its account may not see Jobs. */
  let jobless: Shop;
  let store: Shop;
  /** Has classes too, with which no workload has to do. */
  let unconcerned: Shop;
  /** Its account may not see classes. */
  let former: Shop;
  /** What has been made of it before. */
  let lost: AnyObject;
  let job: AnyObject;

  /** Waits until a controller has dealt with what happened before, by a later change in one of its namespaces. */
  async function passed(controller: ControllerProcess, ...names: string[]): Promise<void> {
    await shop.restartedBy(() => shop.rotate("one"), names, named(...names));
    await controller.idle();
    await loggedUntilNow(shop.team);
  }

  /** What the controller asked in a namespace since, and watched. */
  async function asked(where: Shop, mark: number): Promise<AuditedRequest[]> {
    const all = [...(await auditLog().since(mark)), ...(await auditLog().watchesSince(mark))];
    return all.filter(({ user, namespace }) => user === CONTROLLER && namespace === namespaceOf(where));
  }

  before(async () => {
    api = new Api(controlPlane());
    await installClasses();
    [shop, outside, leaving, losing, jobs, jobless, store, unconcerned, former] = await Promise.all([
      newShop(),
      newShop(),
      newShop(),
      newShop(),
      newJobShop(),
      newJobShop(),
      newStore(),
      newStore(),
      newStore(),
    ]);
    const inFirst = [shop, leaving, losing, jobs, jobless].map(namespaceOf);
    const inSecond = [shop, losing, jobs, store, unconcerned].map(namespaceOf);
    await installReloader(...new Set([...inFirst, ...inSecond]));
    for (const each of [shop, leaving, losing, jobs]) await allowJobs(namespaceOf(each));
    const { rules } = await api.get(`${ROLES}/inlay-reloader`);
    const formerRules = rules.filter(({ apiGroups }: AnyObject) => apiGroups[0] !== CLASS_GROUP);
    await api.create(ROLES, { metadata: { name: FORMER_ROLE }, rules: formerRules });
    await bindRole(api, FORMER_ROLE, namespaceOf(former));
    first = await reloading({ namespaces: inFirst, jobs: true, autoReloadAll: true });
    second = await reloading({ namespaces: [...inSecond, namespaceOf(former)] });
  });
  after(async () => {
    await first?.stop();
    await second?.stop();
    await api.delete(`${ROLES}/${FORMER_ROLE}`);
    await removeReloader();
    assert.deepEqual(foundIn(first.output + second.output), []);
  });

  describe("and all workloads restart that do not say no", () => {
    let mark: number;

    before(async () => {
      mark = await auditLog().mark();
      await first.start();
      await Promise.all([
        shop.make(
          annotated("core", AUTO),
          annotated("all", {}),
          annotated("not", { "reloader.stakater.com/auto": "false" }),
        ),
        ...[outside, leaving, losing].map((each) => each.make(annotated("core", AUTO))),
        ...[jobs, jobless].map(({ team }) => newJob(team, "migrate", {}, JOB)),
        newJob(jobs.team, "silent"),
      ]);
      await Promise.all(["migrate", "silent"].map((name) => ended(jobs.team, name)));
      await untilMade(shop.team, named("core", "all"));
    });

    it("the account has its rights there alone, and nothing is done elsewhere", async () => {
      await outside.rotate("one");
      await passed(first, "core", "all");
      assert.deepEqual(await madeIn(outside.team), []);
      assert.deepEqual(await outside.restarts(), { core: 0 });
      assert.deepEqual(await asked(outside, mark), []);
    });

    it("that is not said of Jobs", async () => {
      await untilMade(jobs.team, [BINDING]);
    });

    it("and no binding is made where the account may not see Jobs, which the log tells", async () => {
      await eventually(() => assert.ok(unreadIn(first).has(namespaceOf(jobless))));
      await passed(first, "core", "all");
      assert.deepEqual(await madeIn(jobless.team), []);
      assert.deepEqual(unreadIn(first), new Set([namespaceOf(jobless)]));
    });
  });

  describe("and then in others, and not on Jobs", () => {
    let mark: number;

    before(async () => {
      [lost] = await untilMade(losing.team, named("core"));
      await untilMade(leaving.team, named("core"));
      await untilMade(jobs.team, [BINDING]);
      job = await jobOf(jobs.team);
      await first.stop();
      await jobs.rotate("bucket");
      await api.delete(`${rolebindings(losing)}/inlay-reloader`);
      mark = await auditLog().mark();
      await second.start();
      await Promise.all([
        store.make(mounting("core", "store", CLASS_AUTO)),
        unconcerned.make(annotated("core", AUTO), mounting("none", "store", {})),
        former.make(mounting("core", "store", CLASS_AUTO), mounting("all", "store", AUTO)),
      ]);
      await untilMade(shop.team, named("core"));
    });

    it("nothing restarts where it is switched off, and what was made says how to delete it", async () => {
      const { team } = leaving;
      const { status } = await team.until("reloader-deployment-core", "OutOfScope");
      const command = `kubectl delete secretbinding reloader-deployment-core -n ${team.namespace}`;
      assert.ok(status.conditions[0].message.endsWith(command));
      const since = await auditLog().mark();
      await leaving.rotate("one");
      await passed(second, "core");
      assert.deepEqual(
        (await asked(leaving, since)).filter(({ resource }) => !resource.startsWith("events")),
        [],
      );
      // Nor does any watch go on that would show it.
      assert.deepEqual(
        (await asked(leaving, mark)).filter(({ as }) => as === RELOADER),
        [],
      );
      assert.deepEqual(await leaving.restarts(), { core: 0 });
    });

    it("no Job is made anew, none is asked for, and the bindings that were made go", async () => {
      await untilMade(jobs.team, []);
      await lookedAt(jobs);
      await jobs.restartedBy(() => jobs.rotate("one"), ["next"], ["reloader-deployment-next"]);
      assert.equal((await jobOf(jobs.team)).metadata.uid, job.metadata.uid);
      assert.deepEqual(
        (await asked(jobs, mark)).filter(({ resource }) => resource === "batch/jobs"),
        [],
      );
    });

    it("the log says where the account lacks its rights, and nothing is taken for gone", async () => {
      await eventually(() => assert.ok(unreadIn(second).has(namespaceOf(losing))));
      await passed(second, "core");
      assert.deepEqual(
        (await madeIn(losing.team)).map(({ metadata }) => metadata.uid),
        [lost.metadata.uid],
      );
      await bindRole(api, "inlay-reloader", namespaceOf(losing));
      await losing.restartedBy(() => losing.rotate("one"), ["core"], named("core"));
    });

    it("no class is asked for where no workload has to do with one", async () => {
      await untilMade(unconcerned.team, named("core"));
      await untilMade(store.team, named("core"));
      await passed(second, "core");
      for (const [each, isAsked] of [
        [store, true],
        [former, true],
        [unconcerned, false],
        [shop, false],
      ] as const) {
        const requests = (await asked(each, mark)).filter(({ resource }) => resource === CLASSES);
        assert.deepEqual(new Set(requests.map(({ as }) => as)), new Set(isAsked ? [RELOADER] : []));
      }
    });

    it("all else goes on where the account may not list classes, and who means them is told", async () => {
      const { team } = former;
      await untilMade(team, named("all"));
      await former.restartedBy(() => former.rotate("one"), ["all"], named("all"));
      await eventually(async () =>
        assert.match((await warningsOn(team, "core")).join(), /SecretProviderClasses can't be listed here; whoever/),
      );
      assert.ok(unreadIn(second).has(namespaceOf(former)));
      const { rules } = await api.get(`${ROLES}/inlay-reloader`);
      await api.merge(`${ROLES}/${FORMER_ROLE}`, { rules });
      await eventually(async () => assert.deepEqual(await sourcesOf(former, "core"), ["bucket"]), 60_000);
      await untilMade(team, named("all", "core"), 60_000);
      await former.restartedBy(() => former.rotate("bucket"), ["all", "core"], named("all", "core"));
    });
  });

  describe("and then in the former ones again", () => {
    it("what changed meanwhile restarts once", async () => {
      await leaving.rotate("one");
      await second.stop();
      await leaving.restartedBy(() => first.start(), ["core"], named("core"));
    });
  });
});
