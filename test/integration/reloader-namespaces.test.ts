/** Shows Reloader's annotations in single namespaces: the effects of the configuration and of the account's permissions. */
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
import { ended, jobOf, newJob } from "../controller/jobs.ts";
import { foundIn } from "../controller/leak-detector.ts";
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
/** The role of the account in a release without support for classes. */
const FORMER_ROLE = "inlay-reloader-former";

const rolebindings = ({ team }: Shop) => team.path("rbac.authorization.k8s.io/v1", "rolebindings");
const namespaceOf = ({ team }: Shop) => team.namespace;

/** The namespaces that the controller reports in its log as unreadable. */
const unreadIn = ({ output }: ControllerProcess) =>
  new Set(
    output.split("\n").flatMap((line) => {
      if (!/apply deploy\/manifests\/optional\/reloader\.yaml/.test(line)) return [];
      return [JSON.parse(line).namespace as string];
    }),
  );

describe("with Reloader's annotations enabled in single namespaces", function () {
  this.timeout("3m");
  let api: Api;
  /** Restarts all workloads that do not opt out, and annotated Jobs. */
  let first: ControllerProcess;
  /** Restarts annotated workloads alone, and no Jobs; in some of the same namespaces, and in others. */
  let second: ControllerProcess;
  /** In a namespace of both controllers. */
  let shop: Shop;
  /** In a namespace of neither. */
  let outside: Shop;
  /** In a namespace of the first alone. */
  let leaving: Shop;
  /** In a namespace where the account loses its permissions. */
  let losing: Shop;
  let jobs: Shop;
  /** In a namespace where the account may not list Jobs. */
  let jobless: Shop;
  let store: Shop;
  /** Has classes that no workload mounts or names by its annotations. */
  let unconcerned: Shop;
  /** In a namespace where the account may not list classes. */
  let former: Shop;
  /** The binding that the first controller made there. */
  let lost: AnyObject;
  let job: AnyObject;

  /** Waits until a controller has processed earlier changes, by a later change in one of its namespaces. */
  async function passed(controller: ControllerProcess, ...names: string[]): Promise<void> {
    await shop.restartedBy(() => shop.rotate("one"), names, named(...names));
    await controller.idle();
    await loggedUntilNow(shop.team);
  }

  /** The requests and watches of the controller in a namespace since a place in the audit log. */
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

  describe("and all workloads restart that do not opt out", () => {
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

    it("the account has permissions only there, and the controller does nothing elsewhere", async () => {
      await outside.rotate("one");
      await passed(first, "core", "all");
      assert.deepEqual(await madeIn(outside.team), []);
      assert.deepEqual(await outside.restarts(), { core: 0 });
      assert.deepEqual(await asked(outside, mark), []);
    });

    it("Jobs restart by annotations alone", async () => {
      await untilMade(jobs.team, [BINDING]);
    });

    it("no binding is created where the account may not list Jobs, and the log says so", async () => {
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

    it("nothing restarts where that is switched off, and the bindings there say how to delete them", async () => {
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
      // No watch is open that could deliver the change.
      assert.deepEqual(
        (await asked(leaving, mark)).filter(({ as }) => as === RELOADER),
        [],
      );
      assert.deepEqual(await leaving.restarts(), { core: 0 });
    });

    it("no Job is recreated or listed, and the bindings of Jobs are deleted", async () => {
      await untilMade(jobs.team, []);
      await lookedAt(jobs);
      await jobs.restartedBy(() => jobs.rotate("one"), ["next"], ["reloader-deployment-next"]);
      assert.equal((await jobOf(jobs.team)).metadata.uid, job.metadata.uid);
      assert.deepEqual(
        (await asked(jobs, mark)).filter(({ resource }) => resource === "batch/jobs"),
        [],
      );
    });

    it("the log says where the account lacks its permissions, and no binding is deleted there", async () => {
      await eventually(() => assert.ok(unreadIn(second).has(namespaceOf(losing))));
      await passed(second, "core");
      assert.deepEqual(
        (await madeIn(losing.team)).map(({ metadata }) => metadata.uid),
        [lost.metadata.uid],
      );
      await bindRole(api, "inlay-reloader", namespaceOf(losing));
      await losing.restartedBy(() => losing.rotate("one"), ["core"], named("core"));
    });

    it("classes are listed only where a workload mounts or names one", async () => {
      await untilMade(unconcerned.team, named("core"));
      await untilMade(store.team, named("core"));
      await passed(second, "core");
      for (const [each, isAsked] of [
        [store, true],
        // The permission rules forbid it.
        [former, false],
        [unconcerned, false],
        [shop, false],
      ] as const) {
        const requests = (await asked(each, mark)).filter(({ resource }) => resource === CLASSES);
        assert.deepEqual(new Set(requests.map(({ as }) => as)), new Set(isAsked ? [RELOADER] : []));
      }
    });

    it("other restarts go on where the account may not list classes, and workloads that name classes get a warning", async () => {
      const { team } = former;
      await untilMade(team, named("all"));
      await former.restartedBy(() => former.rotate("one"), ["all"], named("all"));
      await eventually(async () =>
        assert.match(
          (await warningsOn(team, "core")).join(),
          /may not list SecretProviderClasses in this namespace; .*optional\/reloader\.yaml/,
        ),
      );
      assert.ok(unreadIn(second).has(namespaceOf(former)));
      const { rules } = await api.get(`${ROLES}/inlay-reloader`);
      await api.merge(`${ROLES}/${FORMER_ROLE}`, { rules });
      await eventually(async () => assert.deepEqual(await sourcesOf(former, "core"), ["bucket"]), 60_000);
      await untilMade(team, named("all", "core"), 60_000);
      await former.restartedBy(() => former.rotate("bucket"), ["all", "core"], named("all", "core"));
    });
  });

  describe("and then in the first namespaces again", () => {
    it("what changed in the meantime restarts once", async () => {
      await leaving.rotate("one");
      await second.stop();
      await leaving.restartedBy(() => first.start(), ["core"], named("core"));
    });
  });
});
