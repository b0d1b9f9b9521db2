/**
 * Shows that a workload restarts once for a source that is created, deleted or changed right after it, and for no other change of a source:
 * Inlay reads what the source contained when the workload was created.
 */
import assert from "node:assert/strict";
import { listed, newShop } from "../controller/annotated.ts";
import type { AnyObject } from "../controller/api.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { installReloader, reloading, removeReloader } from "../controller/reloader.ts";
import { rolloutBarrier } from "../controller/rollout-barrier.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";
import { deployment, rolloutRules } from "../controller/workloads.ts";

const TIMES = 8;
const WITHIN_MS = 60_000;
/** The same client writes everything, so `managedFields` do not distinguish its writes. */
const MANAGER = "one-client";

const secrets = (team: TestNamespace) => team.path("v1", "secrets");
const data = (text: string) => ({ token: Buffer.from(secretText(text)).toString("base64") });
const create = (team: TestNamespace, name: string) =>
  team.api.create(`${secrets(team)}?fieldManager=${MANAGER}`, {
    metadata: { name },
    data: { ...data("old"), other: "" },
  });
const patch = (team: TestNamespace, name: string, change: object) =>
  team.api.merge(`${secrets(team)}/${name}`, change, MANAGER);
const remove = (team: TestNamespace, name: string) => team.api.delete(`${secrets(team)}/${name}`);
const LABEL = { metadata: { labels: { touched: "true" } } };

type Act = (team: TestNamespace, name: string) => Promise<unknown>;
const nothing: Act = async () => {};
/** What happens right before the workload is created, and right after; and how often it restarts. */
const CASES: Record<string, [before: Act, after: Act, restarts: number]> = {
  created: [nothing, create, 1],
  "created-before": [create, nothing, 0],
  deleted: [create, remove, 1],
  "deleted-before": [
    async (...of) => {
      await create(...of);
      await remove(...of);
    },
    nothing,
    0,
  ],
  labelled: [create, (team, name) => patch(team, name, LABEL), 0],
  changed: [create, (team, name) => patch(team, name, { ...LABEL, data: data("new") }), 1],
  "changed-before": [
    async (...of) => {
      await create(...of);
      await patch(...of, { data: data("new") });
    },
    nothing,
    0,
  ],
  "key-removed": [create, (team, name) => patch(team, name, { data: { other: null } }), 1],
};
const all = Object.entries(CASES).flatMap(([name, [before, after, restarts]]) =>
  Array.from({ length: TIMES }, (_, at) => ({ name: `${name}-${at}`, before, after, restarts })),
);
const expected = Object.fromEntries(all.map(({ name, restarts }) => [name, restarts]));

async function act(team: TestNamespace, annotationsFor: (name: string) => object): Promise<void> {
  await Promise.all(
    all.map(async ({ name, before, after }) => {
      await before(team, name);
      const object = deployment(name, { replicas: 0 }) as AnyObject;
      object.metadata.annotations = annotationsFor(name);
      await team.api.create(team.path("apps/v1", "deployments"), object);
      await after(team, name);
    }),
  );
}

/** How often each workload has restarted for its binding. */
async function restarts(team: TestNamespace, prefix: string): Promise<Record<string, number>> {
  const { items } = await team.api.get(team.path("inlay.dev/v1alpha1", "secretbindings"));
  const found = new Map(items.map(({ metadata, status }: AnyObject) => [metadata.name, status?.rollout?.revision]));
  return Object.fromEntries(all.map(({ name }) => [name, Number(found.get(`${prefix}${name}`) ?? Number.NaN)]));
}

describe("a source that changes right before or after the creation of a workload", function () {
  this.timeout("5m");
  let controller: ControllerProcess;

  before(async () => {
    await installReloader();
    controller = await reloading({
      namespaces: ["team-*"],
      reloadOnCreate: true,
      reloadOnDelete: true,
      debounce: "500ms",
    });
    await controller.start();
  });
  after(async () => {
    await controller?.stop();
    await removeReloader();
  });

  it("restarts it once by an annotation, if its pods may lack what changed", async () => {
    const shop = await newShop();
    // From now on, Inlay watches the workloads of the namespace.
    await shop.barrier();
    await act(shop.team, listed);
    const restarted = async () => assert.deepEqual(await restarts(shop.team, "reloader-deployment-"), expected);
    await eventually(restarted, WITHIN_MS);
    await shop.barrier();
    await restarted();
  });

  it("restarts it once by restartOn of a binding, if its pods may lack what changed", async () => {
    const team = await createNamespace({ rules: rolloutRules, controller: false });
    for (const { name } of all)
      await team.bind(`rolls-${name}`, {
        sources: [{ secret: { name }, optional: true }],
        rollout: { targets: [{ kind: "Deployment", name }], restartOn: ["SourceCreated", "SourceDeleted"] },
      });
    await rolloutBarrier(team, controller);
    await act(team, () => ({}));
    const restarted = async () => assert.deepEqual(await restarts(team, "rolls-"), expected);
    await eventually(restarted, WITHIN_MS);
    await rolloutBarrier(team, controller);
    await restarted();
  });
});
