/**
 * Shows that Inlay replaces the pods of a StatefulSet or DaemonSet with OnDelete one at a time, as PodDisruptionBudgets permit.
 */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { commandsIn, paste } from "../controller/paste.ts";
import { isReady, isStamped, newReplaced, newReplacedSet, podsOf, uidsOf } from "../controller/replaced.ts";
import { rolloutBarrier } from "../controller/rollout-barrier.ts";

describe("pods with updateStrategy OnDelete", function () {
  this.timeout("3m");

  it("are replaced one at a time, the highest ordinal first, and no more requests follow", async () => {
    const { team, shop, rotate } = await newReplacedSet(3);
    const before = uidsOf(await podsOf(team));
    const requests = await team.requestsDuring(async () => {
      await rotate();
      await shop.rolledOut("rolls", 1, 60_000);
    });
    const evicted = requests.filter(({ resource }) => resource === "pods/eviction");
    assert.deepEqual(
      evicted.map(({ verb, name, code }) => `${verb} ${name} ${code}`),
      ["app-2", "app-1", "app-0"].map((name) => `create ${name} 201`),
    );
    const after = await podsOf(team);
    assert.equal(after.filter((pod) => isReady(pod) && isStamped(pod)).length, 3);
    assert.ok(uidsOf(after).every((uid) => !before.includes(uid)));
    const reasons = (await team.events("rolls")).map(({ reason }) => reason);
    assert.ok(!reasons.includes("PodsNotReplaced"), reasons.join());
    const later = await team.requestsDuring(async () => {
      const touched = { metadata: { labels: { touched: "true" } } };
      for (const pod of ["app-0", "app-1"]) await team.api.merge(`${team.path("v1", "pods")}/${pod}`, touched);
      await team.api.merge(`${team.path("apps/v1", "statefulsets")}/app`, touched);
      await team.api.merge(`${team.path("v1", "secrets")}/bucket`, touched);
      await rolloutBarrier(team);
    });
    assert.deepEqual(
      later.filter(({ resource }) => resource.startsWith("pods")),
      [],
    );
  });

  it("are replaced for a DaemonSet too", async () => {
    const { team, shop, rotate } = await newReplaced("daemonsets", "DaemonSet", {}, 1);
    const [before] = await podsOf(team);
    await rotate();
    await shop.rolledOut("rolls", 1, 60_000);
    const [after] = await podsOf(team);
    assert.ok(after !== undefined && isStamped(after));
    assert.notEqual(after.metadata.uid, before?.metadata.uid);
  });

  it("stay where the account may not evict them: the condition says what to allow", async () => {
    const { team, shop, rotate } = await newReplacedSet(1, []);
    await rotate();
    const said = async () => {
      const { status } = await shop.until("rolls", "Forbidden");
      return status.conditions.find(({ type }: AnyObject) => type === "RolledOut").message;
    };
    const message = await said();
    assert.match(message, /may not list pods .*--verb=list --resource=pods;.*--verb=create --resource=pods\/eviction;/);
    await paste(commandsIn(message));
    await shop.rolledOut("rolls", 1, 60_000);
    assert.ok((await podsOf(team)).every(isStamped));
  });

  it("are replaced only while the binding is not suspended", async () => {
    const { team, shop, rotate } = await newReplacedSet(2);
    await team.rebind("rolls", { rollout: { suspend: true } });
    await rotate();
    await shop.until("rolls", "Suspended");
    assert.ok(!(await podsOf(team)).some(isStamped));
    await team.rebind("rolls", { rollout: { suspend: false } });
    await shop.rolledOut("rolls", 1, 60_000);
    assert.ok((await podsOf(team)).every(isStamped));
  });
});
