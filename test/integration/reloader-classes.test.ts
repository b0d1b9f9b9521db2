/** Reloader's annotations for SecretProviderClasses: a workload restarts for the Secrets that its classes write. */
import assert from "node:assert/strict";
import { AUTO, annotated, named, newShop, type Shop, warningsOn } from "../controller/annotated.ts";
import type { AnyObject } from "../controller/api.ts";
import {
  CLASS_GROUP,
  classesPath,
  classVolume,
  installClasses,
  newClass,
  secretObjects,
} from "../controller/classes.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { foundIn } from "../controller/hunted.ts";
import {
  installReloader,
  madeIn,
  RELOADER,
  reloading,
  removeReloader,
  untilMade,
  whileReloading,
} from "../controller/reloader.ts";
import { loggedUntilNow } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";

const CLASS_AUTO = { "secretproviderclass.reloader.stakater.com/auto": "true" };
const listing = (names: string) => ({ "secretproviderclass.reloader.stakater.com/reload": names });
const RESOURCE = `${CLASS_GROUP}/secretproviderclasses`;

/** Its pods mount a class, and read the Secret `one` beside. */
const mounting = (name: string, secretProviderClass: string, annotations: object) =>
  annotated(name, annotations, { spec: { volumes: [classVolume(secretProviderClass)] } });

const sourcesOf = async ({ team }: Shop, name: string) =>
  (await madeIn(team))
    .filter(({ metadata }) => metadata.name === `reloader-deployment-${name}`)
    .flatMap(({ spec }) => spec.sources.map(({ secret }: AnyObject) => secret?.name));

const merge = ({ team }: Shop, name: string, spec: object) => team.api.merge(`${classesPath(team)}/${name}`, { spec });

async function newStore(): Promise<Shop> {
  const shop = await newShop();
  for (const name of ["bucket", "beside"]) await shop.rotate(name);
  await newClass(shop.team, "store", { bucket: ["token"] });
  await newClass(shop.team, "other", { beside: ["token"] });
  return shop;
}

describe("where Reloader's annotations are understood, and there are SecretProviderClasses,", function () {
  this.timeout("3m");
  let controller: ControllerProcess;

  before(async () => {
    await installClasses();
    await installReloader();
    controller = await reloading({ namespaces: ["team-*"] });
    await controller.start();
  });
  after(async () => {
    await controller?.stop();
    await removeReloader();
    assert.deepEqual(foundIn(controller.output), []);
  });

  it("a workload restarts for what its classes write: all that it mounts, or those that it lists", async () => {
    const shop = await newStore();
    await shop.make(
      mounting("auto", "store", CLASS_AUTO),
      mounting("all", "store", AUTO),
      mounting("listing", "store", listing("oth.*")),
      mounting("excluding", "store", {
        ...CLASS_AUTO,
        ...listing("other"),
        "secretproviderclasses.exclude.reloader.stakater.com/reload": "store",
      }),
      mounting("none", "store", { "secret.reloader.stakater.com/auto": "true" }),
    );
    const made = named("auto", "all", "listing", "excluding", "none");
    await untilMade(shop.team, made);
    await shop.restartedBy(() => shop.rotate("bucket"), ["auto", "all"], made);
    await shop.restartedBy(() => shop.rotate("beside"), ["listing", "excluding"], made);
    await shop.restartedBy(() => shop.rotate("one"), ["all", "none"], made);
  });

  it("a class that comes, changes or goes changes for what it restarts, and restarts nothing", async () => {
    const shop = await newStore();
    const { team } = shop;
    const made = named("core");
    const until = async (names: string[]) => {
      await eventually(async () => assert.deepEqual(await sourcesOf(shop, "core"), names), 30_000);
      await untilMade(team, made);
    };
    await shop.make(mounting("core", "later", { ...CLASS_AUTO, "secret.reloader.stakater.com/reload": "one" }));
    await untilMade(team, made);
    await until(["one"]);
    await newClass(team, "later", { bucket: ["token"] });
    await until(["bucket", "one"]);
    await shop.restartedBy(() => shop.rotate("bucket"), ["core"], made);
    await merge(shop, "later", { secretObjects: secretObjects({ beside: ["token"] }) });
    await until(["beside", "one"]);
    await shop.restartedBy(() => shop.rotate("bucket"), [], made);
    await shop.restartedBy(() => shop.rotate("beside"), ["core"], made);
    await team.api.delete(`${classesPath(team)}/later`);
    await until(["one"]);
    await shop.restartedBy(() => shop.rotate("beside"), [], made);
  });

  it("one that writes no Secret is told on the workload that means it, until it writes one", async () => {
    const shop = await newStore();
    const { team } = shop;
    await merge(shop, "store", { secretObjects: null });
    await shop.make(mounting("core", "store", CLASS_AUTO), mounting("all", "store", AUTO));
    await untilMade(team, named("all"));
    await eventually(async () =>
      assert.deepEqual(await warningsOn(team, "core"), [
        "the SecretProviderClass store writes no Secret, by which alone a change of its values is seen here; give it spec.secretObjects",
      ]),
    );
    await merge(shop, "store", { secretObjects: secretObjects({ bucket: ["token"] }) });
    await untilMade(team, named("all", "core"));
    await shop.restartedBy(() => shop.rotate("bucket"), ["all", "core"], named("all", "core"));
    assert.deepEqual(await warningsOn(team, "all"), []);
  });

  it("what its classes wrote while no controller ran restarts it once, and a start writes nothing", async () => {
    const shop = await newStore();
    const made = named("core");
    await shop.make(mounting("core", "store", CLASS_AUTO));
    await untilMade(shop.team, made);
    await controller.stop();
    await shop.rotate("bucket");
    await shop.restartedBy(() => controller.start(), ["core"], made);
    const before = await shop.rolledOut(made[0] ?? "", 1);
    await controller.stop();
    await controller.start();
    // What comes later is made once all has been looked at that was there.
    await shop.make(annotated("next", AUTO));
    await untilMade(shop.team, [...made, ...named("next")]);
    const after = (await madeIn(shop.team)).find(({ metadata }) => metadata.name === made[0]);
    assert.equal(after?.metadata.resourceVersion, before.metadata.resourceVersion);
  });
});

describe("where Reloader's annotations are understood in some namespaces, and there are SecretProviderClasses,", function () {
  this.timeout("3m");

  before(installClasses);

  it("none is asked for where no workload has to do with one", async () => {
    const [shop, other] = [await newStore(), await newStore()];
    const mark = await auditLog().mark();
    await whileReloading([shop.team.namespace, other.team.namespace], {}, async (controller) => {
      await controller.start();
      await shop.make(annotated("core", AUTO), mounting("none", "store", {}));
      await other.make(mounting("core", "store", CLASS_AUTO));
      await untilMade(shop.team, named("core"));
      await untilMade(other.team, named("core"));
      await loggedUntilNow(shop.team);
      const asked = async () => {
        const all = [...(await auditLog().since(mark)), ...(await auditLog().watchesSince(mark))];
        return new Set(
          all.flatMap(({ as, resource, namespace }) => (as === RELOADER && resource === RESOURCE ? namespace : [])),
        );
      };
      await eventually(async () => assert.deepEqual([...(await asked())], [other.team.namespace]));
    });
  });

  it("and the account may not list them, all else goes on, and who means them is told", async () => {
    const shop = await newStore();
    const { team } = shop;
    await whileReloading([team.namespace], {}, async (controller) => {
      // As the role was before it knew of classes.
      const path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/inlay-reloader";
      const { rules } = await team.api.get(path);
      await team.api.merge(path, { rules: rules.filter(({ apiGroups }: AnyObject) => apiGroups[0] !== CLASS_GROUP) });
      await controller.start();
      await shop.make(mounting("core", "store", CLASS_AUTO), mounting("all", "store", AUTO));
      await untilMade(team, named("all"));
      await shop.restartedBy(() => shop.rotate("one"), ["all"], named("all"));
      await eventually(async () =>
        assert.match((await warningsOn(team, "core")).join(), /SecretProviderClasses can't be listed here; whoever/),
      );
      assert.match(controller.output, /can't be read; apply deploy\/manifests\/optional\/reloader\.yaml/);
      await team.api.merge(path, { rules });
      await eventually(async () => assert.deepEqual(await sourcesOf(shop, "core"), ["bucket"]), 60_000);
      await untilMade(team, named("all", "core"), 60_000);
      await shop.restartedBy(() => shop.rotate("bucket"), ["all", "core"], named("all", "core"));
    });
  });
});
