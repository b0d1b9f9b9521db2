/**
 * Values that keep changing: a workload restarts a limited number of times, over restarts of the controller and for all bindings together,
 * until the values settle or a user asks for it.
 */
import assert from "node:assert/strict";
import { mkdtemp, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { annotated, listed, newShop } from "../controller/annotated.ts";
import type { AnyObject } from "../controller/api.ts";
import { inlay } from "../controller/cli.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { keepChanging } from "../controller/keep-changing.ts";
import { foundIn, secretText } from "../controller/leak-detector.ts";
import { Neighbours } from "../controller/neighbours.ts";
import { installReloader, reloading, removeReloader } from "../controller/reloader.ts";
import { fullOr } from "../controller/scale.ts";
import { stopSharedController } from "../controller/shared.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

/** By default. */
const MAX_RESTARTS = 5;
/** After sixty changes within a minute, Inlay writes fields less and less often, and restarts wait for them. */
const FLAPS_MS = 8_000;
/** Without fields. */
const LONG_MS = fullOr(60_000, FLAPS_MS);
const READS = [{ apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "watch"] }];
const CONFIG = { apiVersion: "config.inlay.dev/v1alpha1", kind: "ControllerConfiguration" };

const keep = (change: () => Promise<unknown>, forMs = FLAPS_MS) => keepChanging(change, forMs);

/** How often the pod template of a Deployment has changed. Nothing else of its spec changes here. */
async function restartsOf(team: TestNamespace, name: string): Promise<number> {
  const { metadata } = await team.api.get(new Workloads(team).path(name));
  return metadata.generation - 1;
}

const messageOf = ({ status }: AnyObject): string =>
  status.conditions.find(({ type }: AnyObject) => type === "RolledOut").message;

/** A Deployment that restarts for a Secret of another namespace, which permits that by a SecretGrant. */
async function newVictim(): Promise<{ both: Neighbours; reader: TestNamespace }> {
  const owner = await createNamespace({ controller: false });
  const reader = await createNamespace({ controller: false, rules: rolloutRules });
  const both = new Neighbours(owner, reader);
  await both.rotate();
  await reader.harbor();
  await reader.grant(READS, { role: `${reader.namespace}-reads`, namespace: owner.namespace });
  await both.grant();
  await new Workloads(reader).deploy({ web: {} });
  await reader.bind("harbor-s3", both.spec({}, { rollout: { targets: [{ kind: "Deployment", name: "web" }] } }));
  await new Workloads(reader).rolledOut("harbor-s3", 0);
  return { both, reader };
}

describe("a value that keeps changing", function () {
  this.timeout("4m");
  let controller: ControllerProcess;
  let folder: string;

  async function start(rollouts?: object): Promise<void> {
    const file = join(folder, "config.yaml");
    if (rollouts !== undefined) await writeFile(file, JSON.stringify({ ...CONFIG, rollouts }));
    controller = new ControllerProcess(controlPlane(), ...(rollouts === undefined ? [] : ["--config", file]));
    await controller.start();
  }

  before(stopSharedController);
  beforeEach(async () => {
    folder = await mkdtemp(join(controlPlane().folder, "breaker-"));
  });
  afterEach(async () => {
    await controller?.stop();
    assert.deepEqual(foundIn(controller.output), []);
  });

  it("of a granted Secret restarts a workload of another namespace 5 times, until a user there asks for more", async () => {
    await start();
    const { both, reader } = await newVictim();
    await keep(() => both.rotate());
    const shop = new Workloads(reader);
    const message = messageOf(await shop.until("harbor-s3", "RestartsTooFrequent"));
    assert.match(message, /Deployment team-\d+\/web: it restarted 5 times within 10m, .*: bucket\/accessKeyID\. /);
    assert.equal(await restartsOf(reader, "web"), MAX_RESTARTS);
    await both.untilHeld(await both.rotate());
    await eventually(async () => {
      const reported = (await reader.events("harbor-s3")).filter(({ reason }) => reason === "RestartsTooFrequent");
      assert.deepEqual(
        reported.map(({ type }) => type),
        ["Warning"],
      );
    });
    assert.equal(await controller.metric("inlay_tenant_limited_total", 'limit="restarts"'), 1);
    assert.equal(await controller.metric("inlay_rollouts_pending", 'reason="RestartsTooFrequent"'), 1);
    const explained = await inlay(controlPlane().kubeconfigFile, "explain", "harbor-s3", "-n", reader.namespace);
    assert.match(explained.stdout, /RestartsTooFrequent/);

    const [last] = await Promise.all([
      keep(() => both.rotate(), FLAPS_MS / 2).then(() => both.rotate()),
      (async () => {
        await controller.stop("SIGKILL");
        await controller.start();
      })(),
    ]);
    await both.untilHeld(last);
    await shop.until("harbor-s3", "RestartsTooFrequent");
    assert.equal(await restartsOf(reader, "web"), MAX_RESTARTS);

    const [, ...command] = /with: inlay (\S+) (\S+) (-n) (\S+)$/.exec(message) ?? assert.fail(message);
    const { code } = await inlay(controlPlane().kubeconfigFile, ...command);
    assert.equal(code, 0);
    await shop.until("harbor-s3", "RolledOut");
    assert.equal(await restartsOf(reader, "web"), MAX_RESTARTS + 1);
    await keep(() => both.rotate());
    await shop.until("harbor-s3", "RestartsTooFrequent");
    assert.equal(await restartsOf(reader, "web"), 2 * MAX_RESTARTS);
  });

  it("restarts a workload once more when it has settled, by the limits of the configuration, which may be changed", async () => {
    await start({ maxRestarts: 2, maxRestartsWindow: "6s" });
    const { both, reader } = await newVictim();
    const shop = new Workloads(reader);
    await keep(() => both.rotate());
    await shop.until("harbor-s3", "RestartsTooFrequent");
    assert.equal(await restartsOf(reader, "web"), 2);
    await both.untilHeld(await both.rotate());
    await shop.until("harbor-s3", "RolledOut");
    assert.equal(await restartsOf(reader, "web"), 3);

    const from = controller.output.length;
    const rollouts = { maxRestarts: "Unlimited" };
    await writeFile(join(folder, "new.yaml"), JSON.stringify({ ...CONFIG, rollouts }));
    await rename(join(folder, "new.yaml"), join(folder, "config.yaml"));
    await eventually(() => assert.match(controller.output.slice(from), /applied the changed section rollouts/));
    await keep(() => both.rotate());
    await shop.until("harbor-s3", "RolledOut");
    assert.ok((await restartsOf(reader, "web")) > 3 + MAX_RESTARTS);
  });

  it("in two Secrets with a binding each restarts the workload of both as often as in one", async () => {
    await start();
    const team = await createNamespace({ controller: false, rules: rolloutRules });
    const shop = new Workloads(team);
    const names = ["one", "two"];
    const rotate = () => Promise.all(names.map((name) => team.secret(name, { token: secretText("token") })));
    await rotate();
    await shop.deploy({ web: { envFrom: names } });
    for (const name of names) {
      await team.bind(name, { sources: [{ secret: { name } }], rollout: { consumersOf: [name] } });
      await shop.rolledOut(name, 0);
    }
    await keep(rotate, LONG_MS);
    for (const name of names) await shop.until(name, "RestartsTooFrequent");
    assert.equal(await restartsOf(team, "web"), MAX_RESTARTS);
  });

  describe("with annotations of Reloader", () => {
    before(() => installReloader());
    after(() => removeReloader());

    it("restarts the workload as often as its binding would", async () => {
      controller = await reloading({ namespaces: ["*"] }, { rollouts: {} });
      await controller.start();
      const shop = await newShop();
      await shop.make(annotated("web", listed("one")));
      await shop.until("reloader-deployment-web", "RolledOut");
      await keep(() => shop.rotate("one"), LONG_MS);
      const { status } = await shop.until("reloader-deployment-web", "RestartsTooFrequent");
      assert.match(messageOf({ status }), /with: inlay sync reloader-deployment-web -n team-\d+$/);
      assert.equal(await restartsOf(shop.team, "web"), MAX_RESTARTS);
    });
  });
});
