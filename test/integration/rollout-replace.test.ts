/** The pods of a StatefulSet or DaemonSet with OnDelete are replaced where a binding asks for it: one at a time, as PodDisruptionBudgets let. */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/hunted.ts";
import { newTeam, pause, type Rule, type Team } from "../controller/team.ts";
import { deployment, rolloutRules, Workloads } from "../controller/workloads.ts";

const mayReplace: Rule[] = [
  { apiGroups: [""], resources: ["pods"], verbs: ["list"] },
  { apiGroups: [""], resources: ["pods/eviction"], verbs: ["create"] },
];
const STAMP = /^1-[0-9a-f]{6}-[0-9a-f]{10}$/;

/** A team with a workload whose pods run, and a binding that replaces them. */
async function newShop(plural: string, kind: string, spec: object, count: number, more: Rule[] = mayReplace) {
  const team = await newTeam({ rules: [...rolloutRules, ...more] });
  const shop = new Workloads(team);
  const rotate = () => team.secret("bucket", { token: secretText("token") });
  await rotate();
  const { selector, template } = (deployment("app", { env: { bucket: ["token"] } }) as AnyObject).spec;
  await team.api.create(team.path("apps/v1", plural), {
    apiVersion: "apps/v1",
    kind,
    metadata: { name: "app" },
    spec: { selector, template, updateStrategy: { type: "OnDelete" }, ...spec },
  });
  await eventually(async () => assert.equal((await podsOf(team)).filter(isReady).length, count));
  const rollout = { consumersOf: ["bucket"], replacePods: true };
  await team.bind("rolls", { sources: [{ secret: { name: "bucket" } }], rollout });
  await shop.rolledOut("rolls", 0);
  return { team, shop, rotate };
}

async function podsOf(team: Team): Promise<AnyObject[]> {
  const { items } = await team.api.get(team.path("v1", "pods"));
  return items.filter(({ metadata }: AnyObject) => metadata.deletionTimestamp === undefined);
}

const isReady = ({ status }: AnyObject) =>
  status.conditions?.some(({ type, status: is }: AnyObject) => type === "Ready" && is === "True") ?? false;
const isStamped = ({ metadata }: AnyObject) => STAMP.test(metadata.annotations?.["inlay.dev/rollout"] ?? "");

const budget = (team: Team) =>
  team.api.create(team.path("policy/v1", "poddisruptionbudgets"), {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: "app" },
    spec: { maxUnavailable: 0, selector: { matchLabels: { app: "app" } } },
  });

describe("the pods that only go when they are deleted", function () {
  this.timeout("3m");

  it("are replaced one at a time, the highest ordinal first, and then nothing is asked any more", async () => {
    const { team, shop, rotate } = await newShop("statefulsets", "StatefulSet", { serviceName: "app", replicas: 3 }, 3);
    const before = await podsOf(team);
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
    const uids = before.map(({ metadata }) => metadata.uid);
    assert.ok(after.every(({ metadata }) => !uids.includes(metadata.uid)));
    const reasons = (await team.events("rolls")).map(({ reason }) => reason);
    assert.ok(!reasons.includes("NotReplaced"), reasons.join());
    const idle = await team.requestsDuring(() => pause(500));
    assert.deepEqual(
      idle.filter(({ resource }) => resource.startsWith("pods")),
      [],
    );
  });

  it("are those of a DaemonSet too", async () => {
    const { team, shop, rotate } = await newShop("daemonsets", "DaemonSet", {}, 1);
    const [before] = await podsOf(team);
    await rotate();
    await shop.rolledOut("rolls", 1, 60_000);
    const [after] = await podsOf(team);
    assert.ok(after !== undefined && isStamped(after));
    assert.notEqual(after.metadata.uid, before?.metadata.uid);
  });

  it("wait for a PodDisruptionBudget, which is told, and for a controller that is away", async () => {
    const { team, shop, rotate } = await newShop("statefulsets", "StatefulSet", { serviceName: "app", replicas: 2 }, 2);
    const { metadata } = await budget(team);
    const path = `${team.path("policy/v1", "poddisruptionbudgets")}/${metadata.name}`;
    await eventually(async () => assert.ok((await team.api.get(path)).status?.observedGeneration));
    const before = await podsOf(team);
    await rotate();
    await eventually(async () => {
      const { status } = await team.binding("rolls");
      const said = JSON.stringify(status.rollout.pending);
      assert.match(said, /a PodDisruptionBudget lets none of its pods go at the moment/);
    });
    await team.controller.stop();
    assert.deepEqual(
      (await podsOf(team)).map(({ metadata: { uid } }) => uid).sort(),
      before.map((pod) => pod.metadata.uid).sort(),
    );
    await team.api.delete(path);
    await team.controller.start();
    await shop.rolledOut("rolls", 1, 60_000);
    assert.ok((await podsOf(team)).every(isStamped));
  });

  it("stay where the account may not have them replaced: the condition says what to allow", async () => {
    const { team, shop, rotate } = await newShop("statefulsets", "StatefulSet", { serviceName: "app" }, 1, []);
    await rotate();
    const said = async () => {
      const { status } = await shop.until("rolls", "Forbidden");
      return status.conditions.find(({ type }: AnyObject) => type === "RolledOut").message;
    };
    assert.match(await said(), /kubectl create role .*--verb=list --resource=pods /);
    const [list, evict] = mayReplace;
    await team.grant([list as Rule], { role: "pods" });
    await eventually(async () => assert.match(await said(), /--verb=create --resource=pods\/eviction /), 60_000);
    await team.grant([evict as Rule], { role: "evictions" });
    await shop.rolledOut("rolls", 1, 60_000);
    assert.ok((await podsOf(team)).every(isStamped));
  });

  it("go while nothing is suspended", async () => {
    const { team, shop, rotate } = await newShop("statefulsets", "StatefulSet", { serviceName: "app", replicas: 2 }, 2);
    await team.rebind("rolls", { rollout: { suspend: true } });
    await rotate();
    await shop.until("rolls", "Suspended");
    assert.ok(!(await podsOf(team)).some(isStamped));
    await team.rebind("rolls", { rollout: { suspend: false } });
    await shop.rolledOut("rolls", 1, 60_000);
    assert.ok((await podsOf(team)).every(isStamped));
  });
});
