/** Kinds whose status is an ordinary field: each write of it increments the generation, and what Inlay can wait for. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { newSite, open } from "../controller/fields.ts";
import {
  apiVersionOf,
  createObject,
  installKind,
  type Kind,
  mayWrite,
  objectPath,
  removeKind,
} from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { rolloutBarrier } from "../controller/rollout-barrier.ts";
import { createNamespace, type Rule } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const text = { type: "string" };
const PLAIN: Kind = {
  group: "plain.example.com",
  kind: "Database",
  plural: "databases",
  spec: { type: "object", properties: { key: text, restartToken: text } },
  plainStatus: open,
};
const rules: Rule[] = [
  ...rolloutRules,
  mayWrite(PLAIN),
  { apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch", "patch"] },
];
const keyFrom = (path: string) => [{ path, from: { source: "bucket", key: "id" } }];

/** What a controller does that reports what it has observed. */
async function report(api: Api, path: string, ready: string): Promise<void> {
  const { generation } = (await api.get(path)).metadata;
  await api.merge(path, { status: { observedGeneration: generation, conditions: [{ type: "Ready", status: ready }] } });
  assert.equal((await api.get(path)).metadata.generation, generation + 1);
}

describe("a kind without the status subresource", function () {
  this.timeout("2m");

  after(() => removeKind(new Api(controlPlane()), PLAIN));

  it("has restarted by its field once its controller has observed that, although the generation is later", async () => {
    const { team, shop, path, rotate, workload } = await newSite(PLAIN, { key: "a" }, "spec.restartToken");
    await report(team.api, path, "True");
    await shop.rolledOut("main", 0);
    await rotate();
    await eventually(async () => assert.ok((await workload()).spec.restartToken));
    const rolls = async () => (await shop.until("main", "RollingOut")).status.rollout.pending.workloads[0];
    await eventually(async () => assert.equal((await rolls()).state, "Rolling"));
    await report(team.api, path, "False");
    await eventually(async () => assert.match((await rolls()).message, /Ready is not True/));
    await report(team.api, path, "True");
    await shop.rolledOut("main", 1);
  });

  /** A team with a Deployment, and a binding that writes to a database and a ConfigMap before it restarts the Deployment. */
  async function newDatabase(waitForTargets: object) {
    const team = await createNamespace({ rules });
    await installKind(team.api, PLAIN);
    const rotate = (id: string) => team.secret("bucket", { token: secretText("token"), id });
    await rotate("one");
    const shop = new Workloads(team);
    await shop.deploy({ core: { env: { bucket: ["token"] } } });
    await createObject(team.api, PLAIN, "main", {}, team.namespace);
    await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "copy" } });
    const database = { apiVersion: apiVersionOf(PLAIN), kind: PLAIN.kind, name: "main", fields: keyFrom("spec.key") };
    const copy = { apiVersion: "v1", kind: "ConfigMap", name: "copy", fields: keyFrom("data.key") };
    await team.bind("rolls", {
      acknowledge: ["ReadableCopies"],
      sources: [{ secret: { name: "bucket" } }],
      targets: [database, copy],
      rollout: { consumersOf: ["bucket"], waitForTargets },
    });
    await shop.rolledOut("rolls", 0);
    return { team, shop, rotate, path: objectPath(PLAIN, team.namespace, "main") };
  }

  const messageOf = ({ status }: AnyObject): string =>
    status.conditions.find(({ type }: AnyObject) => type === "RolledOut").message;

  it("is waited for by its condition, and the status says which targets can't be waited for", async () => {
    const { team, shop, rotate, path } = await newDatabase({ condition: "Ready" });
    await rotate("two");
    assert.match(
      messageOf(await shop.until("rolls", "TargetsNotReady")),
      /Database .*\/main has no condition Ready yet/,
    );
    await rolloutBarrier(team);
    assert.deepEqual(await shop.restarts(), { core: 0 });
    await report(team.api, path, "False");
    await eventually(async () => assert.match(messageOf(await shop.until("rolls", "TargetsNotReady")), /not True/));
    await report(team.api, path, "True");
    const done = await shop.rolledOut("rolls", 1);
    assert.match(messageOf(done), /did not wait for the ConfigMap /);
    assert.doesNotMatch(messageOf(done), /Database/);
    assert.deepEqual(await shop.restarts(), { core: 1 });
  });

  it("is waited for by the generation of the write, not by that of its status", async () => {
    const { team, shop, rotate, path } = await newDatabase({});
    await report(team.api, path, "True");
    await rotate("two");
    assert.match(messageOf(await shop.until("rolls", "TargetsNotReady")), /Database .*\/main is at generation \d+, /);
    await report(team.api, path, "True");
    await shop.rolledOut("rolls", 1);
    assert.deepEqual(await shop.restarts(), { core: 1 });
  });
});
