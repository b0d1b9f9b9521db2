/**
 * Three replicas, with bindings that a composition makes and a rollout under way. The leader is killed, or paused for longer than its
 * lease, or the API server is killed: the final state is right, and nothing is written or restarted twice.
 */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import {
  ACCESS_KEY_BASE,
  compose,
  composedIn,
  installCompositions,
  removeCompositions,
  TO_CLAIM,
  untilComposition,
} from "../controller/compositions.ts";
import { eventually } from "../controller/eventually.ts";
import { foundIn, secretText } from "../controller/leak-detector.ts";
import { Replicas } from "../controller/replicas.ts";
import { loggedUntilNow } from "../controller/requests.ts";
import { fullOr } from "../controller/scale.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const REPLICAS = 3;
const BINDINGS = fullOr(10_000, 100);
const WORKLOADS = fullOr(200, 16);
/** How long a new pod must be ready before other workloads restart, so that the rollout is under way for a while. */
const READY_S = 1;
/** As docs/operations.md says. */
const FAILOVER_MS = 15_000;
const DONE_WITHIN_MS = fullOr(1_800_000, 240_000);
const NAME = "harbor";
const ROLLS = "rolls";
const COMPOSITION = { bindings: [{ name: "key", base: ACCESS_KEY_BASE, patches: [TO_CLAIM] }] };

describe(`three replicas with ${BINDINGS} bindings of a composition and a rollout`, function () {
  this.timeout(fullOr(120, 6) * 60_000);
  const names = Array.from({ length: BINDINGS }, (_, index) => `harbor-${index}`);
  let team: TestNamespace;
  let replicas: Replicas;
  let value: string;
  let rotations = 0;
  let bindings: string[];

  before(async () => {
    await stopSharedController();
    await installCompositions();
    team = await createNamespace({ controller: false, rules: rolloutRules });
    value = secretText("access");
    await team.secret("bucket", { accessKeyID: value });
    await Promise.all(names.map((name) => team.harbor(name)));
    const reads = { env: { bucket: ["accessKeyID"] }, spec: { minReadySeconds: READY_S } };
    await new Workloads(team).deploy(
      Object.fromEntries(Array.from({ length: WORKLOADS }, (_, index) => [`app-${index}`, reads])),
    );
    replicas = await Replicas.start(team.api, REPLICAS);
    const rollout = { consumersOf: ["bucket"], kinds: ["Deployment"], maxConcurrent: WORKLOADS / 4 };
    await team.bind(ROLLS, { sources: [{ secret: { name: "bucket" } }], rollout });
    await compose(team, NAME, COMPOSITION);
    await isDone();
    bindings = await composed();
  });
  after(async () => {
    await replicas?.stop();
    const { items } = await team.api.get(team.path("inlay.dev/v1alpha1", "secretbindings"));
    await Promise.all(items.map(({ metadata }: AnyObject) => team.unbindByForce(metadata.name)));
    await removeCompositions();
  });

  /** The bindings of the composition. None is created again or changed. */
  const composed = async () =>
    (await composedIn(team)).map(({ metadata }) => `${metadata.name} ${metadata.uid} ${metadata.generation}`).sort();

  /** By name, how often the spec of each object has changed. For a Deployment here, these are its restarts. */
  const generations = async (apiVersion: string, plural: string): Promise<Map<string, number>> => {
    const { items } = await team.api.get(team.path(apiVersion, plural));
    return new Map(items.map(({ metadata }: AnyObject) => [metadata.name, metadata.generation]));
  };
  const targets = () => generations("goharbor.io/v1beta1", "harborclusters");
  const workloads = () => generations("apps/v1", "deployments");

  /** The objects whose spec has not changed once since then. */
  const notOnce = (before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>) =>
    [...after].filter(([name, generation]) => generation !== (before.get(name) ?? 0) + 1);

  /** Waits until every target has the value, every binding is Ready, and the rollout is done. */
  const isDone = async () => {
    await eventually(async () => {
      await replicas.replace(REPLICAS);
      // The lists are long, so wait for the leader first.
      await (await replicas.leader()).idle(5_000);
      const { status } = await untilComposition(team, NAME, "Ready", "Ready", 5_000);
      assert.deepEqual([status.claims, status.bindings, status.readyBindings], [BINDINGS, BINDINGS, BINDINGS]);
      const { items } = await team.api.get(team.path("goharbor.io/v1beta1", "harborclusters"));
      const outdated = items.filter(({ spec }: AnyObject) => spec.storage.spec.s3.accesskey !== value);
      assert.equal(outdated.length, 0, `${outdated.length} targets are outdated`);
    }, DONE_WITHIN_MS);
    await new Workloads(team).rolledOut(ROLLS, rotations, DONE_WITHIN_MS);
    const all = await composedIn(team);
    assert.deepEqual(foundIn(JSON.stringify(all)), []);
    assert.deepEqual([all.length, all.filter((each) => !isReady(each))], [BINDINGS, []]);
  };

  /** Changes the Secret, and calls `fault` when a part of the workloads has restarted. */
  const duringChange = async (fault: () => Promise<void>) => {
    const before = [await targets(), await workloads()] as const;
    value = secretText("access");
    rotations++;
    await team.secret("bucket", { accessKeyID: value });
    await eventually(async () => {
      await replicas.replace(REPLICAS);
      const waiting = [...(await workloads())].filter(([name, generation]) => generation === before[1].get(name));
      assert.ok(waiting.length > 0 && waiting.length < WORKLOADS, `${waiting.length} workloads wait`);
    }, DONE_WITHIN_MS);
    await fault();
    await isDone();
    assert.deepEqual(notOnce(before[0], await targets()), []);
    assert.deepEqual(notOnce(before[1], await workloads()), []);
    assert.deepEqual(await composed(), bindings);
  };

  it("continue within 15 s after the leader is killed", () =>
    duringChange(async () => {
      const { ms } = await replicas.failOver("SIGKILL");
      assert.ok(ms < FAILOVER_MS, `${ms} ms`);
    }));

  it("continue within 15 s after the leader is paused, which changes nothing when it runs again", async () => {
    let mark = await auditLog().mark();
    await duringChange(async () => {
      const { former, ms } = await replicas.failOver("SIGSTOP");
      assert.ok(ms < FAILOVER_MS, `${ms} ms`);
      await isDone();
      const writes = async () => {
        await loggedUntilNow(team);
        const all = await auditLog().controllerWritesSince(mark);
        return all.filter(({ credential, code }) => credential === former.credential && code < 300);
      };
      assert.ok((await writes()).length > 0, "it wrote before the pause");
      mark = await auditLog().mark();
      former.signal("SIGCONT");
      assert.equal(await former.ended(), 1);
      assert.match(former.output, /"msg":"lost the lease"/);
      // The API server rejects requests that it had begun to send, because the objects have changed. An event is a new object.
      assert.deepEqual(
        (await writes()).filter(({ resource }) => resource !== "events.k8s.io/events"),
        [],
      );
    });
  });

  it("continue after the API server is killed and started again", () =>
    duringChange(async () => {
      const { apiServer } = controlPlane();
      await apiServer.kill("SIGKILL");
      await apiServer.start();
    }));
});

const isReady = ({ metadata, status }: AnyObject): boolean =>
  status?.conditions?.some(
    (each: AnyObject) =>
      each.type === "Ready" && each.status === "True" && each.observedGeneration === metadata.generation,
  );
