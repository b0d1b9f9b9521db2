/** Reloader's annotations for SecretProviderClasses: a workload restarts for the Secrets that its classes write. */
import assert from "node:assert/strict";
import { AUTO, named, type Shop, warningsOn } from "../controller/annotated.ts";
import { CLASS_AUTO, mounting, newStore, sourcesOf } from "../controller/annotated-classes.ts";
import { classesPath, installClasses, newClass, secretObjects } from "../controller/classes.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { foundIn } from "../controller/hunted.ts";
import { installReloader, reloading, removeReloader, untilMade } from "../controller/reloader.ts";

const listing = (names: string) => ({ "secretproviderclass.reloader.stakater.com/reload": names });

const merge = ({ team }: Shop, name: string, spec: object) => team.api.merge(`${classesPath(team)}/${name}`, { spec });

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
});
