/** Shows that a restarted controller writes nothing where nothing changed, and processes the changes that it missed. */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { isOfBarrier } from "../controller/barrier.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { auditLog } from "../controller/shared.ts";
import {
  createNamespace,
  fieldsOf,
  harborTarget,
  RESTARTED_WITHIN_MS,
  type TestNamespace,
} from "../controller/test-namespace.ts";

const accessKeyFrom = { from: { source: "bucket", key: "accessKeyID" } };
const remove = { onRelease: "Remove" };

/** Waits until the controller has read a HarborCluster of the team since a mark. */
async function untilRead(team: TestNamespace, name: string, mark: number): Promise<void> {
  await eventually(async () => {
    const requests = await auditLog().since(mark);
    assert.ok(
      requests.some(
        (each) =>
          each.verb === "get" &&
          each.resource === "goharbor.io/harborclusters" &&
          each.namespace === team.namespace &&
          each.name === name,
      ),
    );
  }, RESTARTED_WITHIN_MS);
}

/** Waits for the first object for which `has` is true. */
async function first(team: TestNamespace, path: string, has: (object: AnyObject) => boolean): Promise<void> {
  for await (const { object } of team.api.watch(path, 60)) if (has(object)) return;
}

describe("a controller that is restarted", function () {
  this.timeout("2m");

  it("writes nothing when nothing changed, whatever state its bindings are in", async () => {
    const team = await createNamespace();
    const bucket = [{ secret: { name: "bucket" } }];
    const target = (name: string, more: object = {}) => harborTarget({ accesskey: accessKeyFrom }, { name, ...more });
    await team.secret("bucket", { accessKeyID: secretText("access") });
    for (const name of ["one", "two", "removes", "taken"]) await team.harbor(name);
    await team.editS3({ accesskey: "theirs" }, "platform", "taken");
    await team.bind("synced", { sources: bucket, targets: [target("one"), target("two")] });
    await team.bind("removes", { sources: bucket, targets: [target("removes", remove)] });
    await team.bind("conflict", { sources: bucket, targets: [target("taken")] });
    await team.bind("no-target", { sources: bucket, targets: [target("absent")] });
    await team.bind("no-source", { sources: [{ name: "bucket", secret: { name: "absent" } }], targets: [target("x")] });
    const states = {
      synced: "Synced",
      removes: "Synced",
      conflict: "Conflict",
      "no-target": "TargetNotFound",
      "no-source": "SourceNotFound",
    };
    for (const [name, reason] of Object.entries(states)) await team.until(name, reason);
    await team.controller.stop();
    const mark = await auditLog().mark();
    await team.controller.start();
    for (const name of ["one", "two", "removes", "taken", "absent"]) await untilRead(team, name, mark);
    await team.barrier();
    const writes = await auditLog().controllerWritesSince(mark);
    assert.deepEqual(
      writes.filter((write) => write.namespace === team.namespace && !isOfBarrier(write)),
      [],
    );
  });

  it("processes all changes that it missed", async () => {
    const names = ["rotated", "drifted", "edited", "removed", "created", "released"] as const;
    const teams = {} as Record<(typeof names)[number], TestNamespace>;
    const keys = {} as Record<(typeof names)[number], string>;
    await Promise.all(
      names.map(async (name) => {
        const team = await createNamespace();
        teams[name] = team;
        keys[name] = await team.boundHarbor(name === "removed" || name === "released" ? remove : {});
      }),
    );
    const { rotated, drifted, edited, removed, created, released } = teams;
    const lateKey = secretText("late");
    await rotated.controller.stop();

    keys.rotated = secretText("rotated");
    await rotated.secret("bucket", { accessKeyID: keys.rotated });
    await drifted.editS3({ accesskey: "edited" });
    const endpoint = { regionendpoint: { template: "https://s3.test" } };
    await edited.rebind("harbor-s3", { targets: [harborTarget(endpoint)] });
    await removed.api.delete(removed.bindingPath("harbor-s3"));
    await created.secret("late", { accessKeyID: lateKey });
    await created.harbor("late");
    await created.bind("late", {
      sources: [{ name: "bucket", secret: { name: "late" } }],
      targets: [harborTarget({ accesskey: accessKeyFrom }, { name: "late" })],
    });
    await released.harbor("other");
    const other = harborTarget({ accesskey: accessKeyFrom }, { name: "other" });
    await released.rebind("harbor-s3", { targets: [other] });

    await rotated.controller.start();
    for (const team of [rotated, drifted]) {
      const name = team === rotated ? "rotated" : "drifted";
      await eventually(async () => assert.equal((await team.s3()).accesskey, keys[name]), RESTARTED_WITHIN_MS);
    }
    await edited.until("harbor-s3", "Synced", RESTARTED_WITHIN_MS);
    const { accesskey, regionendpoint } = await edited.s3();
    assert.deepEqual([accesskey, regionendpoint], [keys.edited, "https://s3.test"]);
    await removed.untilGone(removed.bindingPath("harbor-s3"), RESTARTED_WITHIN_MS);
    assert.equal((await removed.s3()).accesskey, undefined);
    await created.until("late", "Synced", RESTARTED_WITHIN_MS);
    assert.equal((await created.s3("late")).accesskey, lateKey);
    await released.until("harbor-s3", "Synced", RESTARTED_WITHIN_MS);
    assert.equal((await released.s3("other")).accesskey, keys.released);
    assert.equal((await released.s3()).accesskey, undefined);
  });
});

describe("a controller that is killed", function () {
  this.timeout("2m");

  const moments: Record<string, (team: TestNamespace) => [path: string, has: (object: AnyObject) => boolean]> = {
    "when bindings exist": (team) => [team.path("inlay.dev/v1alpha1", "secretbindings"), () => true],
    "when it has recorded its next write": (team) => [
      team.path("inlay.dev/v1alpha1", "secretbindings"),
      ({ status }) => status?.targets?.[0].pendingPaths !== undefined,
    ],
    "when it has written": (team) => [
      team.path("goharbor.io/v1beta1", "harborclusters"),
      ({ spec }) => spec.storage.spec.s3.accesskey !== undefined,
    ],
  };
  for (const [moment, seen] of Object.entries(moments)) {
    it(`${moment} reaches the right state after a restart, and has recorded all that it wrote`, async () => {
      const team = await createNamespace();
      const accessKey = secretText("access");
      await team.secret("bucket", { accessKeyID: accessKey });
      const names = Array.from({ length: 16 }, (_, index) => `harbor-${index}`);
      await Promise.all(names.map((name) => team.harbor(name)));
      const now = first(team, ...seen(team));
      const bound = names.map((name) =>
        team.bind(name, {
          sources: [{ secret: { name: "bucket" } }],
          targets: [harborTarget({ accesskey: accessKeyFrom }, { name, ...remove })],
        }),
      );
      await now;
      await team.controller.stop("SIGKILL");
      await Promise.all(bound);
      // By then, each value in a target is recorded as written or as pending.
      for (const name of names) {
        if ((await team.s3(name)).accesskey === undefined) continue;
        const [record] = (await team.binding(name)).status.targets;
        assert.deepEqual([...(record.paths ?? []), ...(record.pendingPaths ?? [])], ["spec.storage.spec.s3.accesskey"]);
      }
      const deleted = names.slice(0, 8);
      for (const name of deleted) await team.api.delete(team.bindingPath(name));
      await team.controller.start();
      const end = async (name: string) => {
        if (!deleted.includes(name)) {
          await team.until(name, "Synced", RESTARTED_WITHIN_MS);
          assert.equal((await team.s3(name)).accesskey, accessKey);
          await team.api.delete(team.bindingPath(name));
        }
        await team.untilGone(team.bindingPath(name), RESTARTED_WITHIN_MS);
        const harbor = await team.api.get(team.harborPath(name));
        assert.equal(harbor.spec.storage.spec.s3.accesskey, undefined);
        assert.equal(fieldsOf(harbor, team.manager(name)), undefined);
      };
      await Promise.all(names.map(end));
    });
  }
});
