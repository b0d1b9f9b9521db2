/**
 * A controller of compositions that is killed or stopped. No binding is lost or created twice, and nothing else is written.
 */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { age, untilProgress } from "../controller/aged.ts";
import { isOfBarrier } from "../controller/barrier.ts";
import {
  ACCESS_KEY_BASE,
  COMPOSITIONS,
  compose,
  composedIn,
  composedNames,
  compositionPath,
  installCompositions,
  removeCompositions,
  TO_CLAIM,
  untilComposition,
} from "../controller/compositions.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { loggedUntilNow } from "../controller/requests.ts";
import { scaled } from "../controller/scale.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";
import { createNamespace, RESTARTED_WITHIN_MS, type TestNamespace } from "../controller/test-namespace.ts";

const MANY = scaled(1_000, 60);
const MADE_WITHIN_MS = 300_000;
/** So few that the controller is killed before it has written all. */
const CONCURRENCY = 6;
/** The API server may execute requests that a killed controller has sent. They are in the log as aborted. */
const IN_FLIGHT = 2 * CONCURRENCY;
const NAME = "harbor";

const bindingsOf = (base: object) => [{ name: "key", base, patches: [TO_CLAIM] }];
const USUAL = { bindings: bindingsOf(ACCESS_KEY_BASE) };
/** The edit changes every binding, except for each tenth claim, which is no claim any more. */
const EDIT = {
  for: { selector: { exceptNames: ["pulse*", "*0"] } },
  bindings: bindingsOf({ spec: { ...ACCESS_KEY_BASE.spec, defaults: { onConflict: "Force" } } }),
};

/** A namespace with the Secret `bucket` and a HarborCluster for each name. */
async function newTeam(names: readonly string[], controller = true): Promise<TestNamespace> {
  const team = await createNamespace({ controller });
  await team.secret("bucket", { accessKeyID: secretText("access") });
  await Promise.all(names.map((name) => team.harbor(name)));
  return team;
}

/** The successful requests of the composition's account for bindings of a namespace since a mark. */
async function writesOf(team: TestNamespace, mark: number): Promise<Record<"create" | "update" | "delete", string[]>> {
  await loggedUntilNow(team);
  const writes = (await auditLog().since(mark)).filter(
    ({ as, resource, namespace, code }) =>
      as === COMPOSITIONS && resource === "inlay.dev/secretbindings" && namespace === team.namespace && code < 300,
  );
  const of = (verb: string) =>
    writes
      .filter((each) => each.verb === verb)
      .map(({ name }) => name)
      .sort();
  return { create: of("create"), update: of("update"), delete: of("delete") };
}

/** Each of these was written once, and nothing else was. */
function assertOnce(written: readonly string[], expected: readonly string[]): void {
  assert.deepEqual([...new Set(written)], written);
  assert.deepEqual(
    written.filter((name) => !expected.includes(name)),
    [],
  );
  assert.ok(written.length >= expected.length - IN_FLIGHT, `${written.length} of ${expected.length}`);
}

/** All writes of the controller to a namespace and to compositions since a mark. */
async function allWrites(team: TestNamespace, mark: number): Promise<string[]> {
  await loggedUntilNow(team);
  return (await auditLog().controllerWritesSince(mark))
    .filter(
      (each) => (each.namespace === team.namespace || each.resource.includes("composition")) && !isOfBarrier(each),
    )
    .map(({ verb, resource, name }) => `${verb} ${resource} ${name}`);
}

describe("a controller of compositions that is killed or stopped", function () {
  this.timeout("15m");
  const controllers: ControllerProcess[] = [];

  const newController = async () => {
    const controller = new ControllerProcess(controlPlane(), "--concurrency", `${CONCURRENCY}`);
    controllers.push(controller);
    await controller.start();
    return controller;
  };

  /** Kills the controller after so many more writes, and starts another one. */
  const killedAfter = async (controller: ControllerProcess, verb: string, count: number) => {
    const written = () => controller.metric("inlay_writes_total", `verb="${verb}"`);
    const before = await written();
    await eventually(async () => assert.ok((await written()) - before >= count), MADE_WITHIN_MS);
    await controller.stop("SIGKILL");
    return newController();
  };

  before(() => installCompositions());
  after(async () => {
    await Promise.all(controllers.map((controller) => controller.stop()));
    await removeCompositions();
  });

  it(`creates each binding of ${MANY} claims once, changes each once, and then writes nothing`, async () => {
    await stopSharedController();
    const names = Array.from({ length: MANY }, (_, index) => `harbor-${index}`);
    const all = names.map((name) => `${name}-key`).sort();
    const left = all.filter((name) => !name.endsWith("0-key"));
    const team = await newTeam(names, false);
    const untilReady = (count: number) =>
      eventually(async () => {
        const { status } = await untilComposition(team, NAME, "Ready", "Ready", MADE_WITHIN_MS);
        assert.deepEqual([status.claims, status.bindings, status.problems], [count, count, []]);
      });
    let controller = await newController();
    let mark = await auditLog().mark();
    await compose(team, NAME, USUAL);
    controller = await killedAfter(controller, "create", MANY / 5);
    assert.ok((await writesOf(team, mark)).create.length < MANY);
    await untilReady(MANY);
    const made = await writesOf(team, mark);
    assertOnce(made.create, all);
    assert.deepEqual([made.update, made.delete], [[], []]);
    assert.deepEqual(await composedNames(team), all);
    const uids = new Map((await composedIn(team)).map(({ metadata }) => [metadata.name, metadata.uid]));

    mark = await auditLog().mark();
    const [killed] = await Promise.all([
      killedAfter(controller, "update", MANY / 3),
      team.api.merge(compositionPath(team, NAME), { spec: EDIT }),
    ]);
    controller = killed;
    assert.ok((await writesOf(team, mark)).update.length < left.length);
    await untilReady(left.length);
    const edited = await writesOf(team, mark);
    assertOnce(edited.update, left);
    assertOnce(
      edited.delete,
      all.filter((name) => !left.includes(name)),
    );
    assert.deepEqual(edited.create, []);
    // A deleted binding exists until it has released what it wrote.
    await eventually(async () =>
      assert.deepEqual(
        (await composedIn(team)).map(({ metadata }) => [metadata.name, metadata.uid, metadata.generation]),
        left.map((name) => [name, uids.get(name), 2]),
      ),
    );

    await team.barrier({ controller });
    await controller.stop();
    mark = await auditLog().mark();
    await controller.start();
    await team.barrier({ controller });
    assert.deepEqual(await allWrites(team, mark), []);
    await controller.stop();
  });

  it("deletes the bindings of a composition that is deleted meanwhile, and follows claims that are created and deleted", async () => {
    const deleted = await newTeam(["harbor", "second"]);
    const kept = await newTeam(["harbor", "second"]);
    for (const team of [deleted, kept]) {
      await compose(team, NAME, USUAL);
      await untilComposition(team, NAME, "Ready");
    }
    await kept.controller.stop();
    await deleted.api.delete(compositionPath(deleted, NAME));
    await kept.api.delete(kept.harborPath("second"));
    await kept.harbor("third");
    await kept.controller.start();
    await deleted.untilGone(compositionPath(deleted, NAME), RESTARTED_WITHIN_MS);
    assert.deepEqual(await composedNames(deleted), []);
    await eventually(async () => assert.deepEqual(await composedNames(kept), ["harbor-key", "third-key"]));
    await eventually(async () => {
      const { status } = await untilComposition(kept, NAME, "Ready");
      assert.deepEqual([status.claims, status.bindings, status.readyBindings], [2, 2, 2]);
    });
  });

  it("writes nothing at a start for a claim with a field that the composition does not support", async () => {
    const team = await newTeam(["harbor"]);
    const shown = (field: string) => ({
      type: "ToCompositeFieldPath",
      fromFieldPath: `status.conditions[type=Ready].${field}`,
      toFieldPath: `metadata.annotations[example.com/${field}]`,
    });
    const patches = [TO_CLAIM, shown("reason"), shown("lastTransitionTime")];
    const notSupported = [{ fromFieldPath: "metadata.annotations[example.com/refuse]", message: "remove it" }];
    await compose(team, NAME, { bindings: [{ name: "key", base: ACCESS_KEY_BASE, patches }], notSupported });
    const untilShown = (reason: string) =>
      eventually(async () => {
        const { metadata } = await team.api.get(team.harborPath("harbor"));
        assert.equal(metadata.annotations?.["example.com/reason"], reason);
      });
    await untilShown("Synced");
    await team.api.merge(team.harborPath("harbor"), { metadata: { annotations: { "example.com/refuse": "yes" } } });
    await untilShown("NotSupported");
    await untilComposition(team, NAME, "NotSupported", "Ready");
    const controller = team.controller;
    await team.barrier({ controller });
    await controller.stop();
    // After a minute, it is Stalled.
    await age(team.api, compositionPath(team, NAME));
    await controller.start();
    await untilProgress(team.api, compositionPath(team, NAME), "Stalled NotSupported");
    await team.barrier({ controller });
    await controller.stop();
    const mark = await auditLog().mark();
    await controller.start();
    await team.barrier({ controller });
    // It reports this once more by an event.
    const writes = (await allWrites(team, mark)).filter((each) => !each.startsWith("create events.k8s.io/events"));
    assert.deepEqual(writes, []);
    await team.api.merge(team.harborPath("harbor"), { metadata: { annotations: { "example.com/refuse": null } } });
    await untilShown("Synced");
  });
});
