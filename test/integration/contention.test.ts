/** Other users who keep changing a field back. The binding writes with backoff, and names the other user. */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { whileBusy } from "../controller/busy.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { scaled } from "../controller/scale.ts";
import { auditLog } from "../controller/shared.ts";
import { createNamespace, harborTarget, type TestNamespace } from "../controller/test-namespace.ts";

const ROTATIONS = scaled(25, 12);

/** The times when bindings changed an object of a team since a mark, in milliseconds. */
async function changesSince(mark: number, team: TestNamespace, object: string): Promise<number[]> {
  const changes = (await auditLog().since(mark)).filter(
    ({ verb, resource, name, as, code }) =>
      verb === "patch" &&
      code === 200 &&
      [resource, name].join("/") === object &&
      as === `system:serviceaccount:${team.namespace}:inlay`,
  );
  return changes.map(({ at }) => Date.parse(at)).sort((a, b) => a - b);
}

/** Waits for a pause of one second between two changes, and then of two seconds. Returns the times of all changes. */
function untilRare(mark: number, team: TestNamespace, object: string): Promise<number[]> {
  return eventually(async () => {
    const times = await changesSince(mark, team, object);
    const pauses = pausesIn(times);
    assert.ok(pauses.length >= 2 && isDoubling(pauses.slice(-2)), `${pauses}`);
    return times;
  });
}

const pausesIn = (times: number[]) => times.slice(1).map((time, n) => time - (times[n] as number));
/** Whether the pauses are 1, 2, 4 seconds and so on, or more. The times are exact to the millisecond. */
const isDoubling = (pauses: number[]) => pauses.every((ms, n) => ms >= 1_000 * 2 ** n - 1);

/** Resets the access key as another user whenever it changes, until `act` has ended. */
function againstRival<T>(team: TestNamespace, act: () => Promise<T>): Promise<T> {
  const putBack = async () => {
    if ((await team.s3()).accesskey !== "theirs") await team.editS3({ accesskey: "theirs" }, "stubborn");
  };
  return whileBusy(putBack, 20, act);
}

const contended = (binding: AnyObject) => binding.status.conditions[0];

describe("a target whose other fields another user keeps changing", () => {
  it("gets every new value, and no Contended is reported", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    let edits = 0;
    const edit = () => team.editS3({ rootdirectory: `/${edits++}` }, "busy");
    await whileBusy(edit, 5, async () => {
      for (let n = 0; n < ROTATIONS; n++) {
        const accessKeyID = secretText("rotated");
        await team.secret("bucket", { accessKeyID });
        await eventually(async () => assert.equal((await team.s3()).accesskey, accessKeyID));
      }
    });
    assert.ok(edits > ROTATIONS);
    const events = await team.events("harbor-s3");
    assert.deepEqual(
      events.filter(({ reason }) => reason === "Contended"),
      [],
    );
    await team.until("harbor-s3", "Synced");
  });
});

describe("a field that another user keeps changing back", () => {
  it("is written three times at once and then with backoff, and the condition names the user", async () => {
    const team = await createNamespace();
    const accessKey = await team.boundHarbor();
    const mark = await auditLog().mark();
    await againstRival(team, async () => {
      const { status, message } = contended(await team.until("harbor-s3", "Contended"));
      assert.equal(status, "False");
      assert.match(message, /stubborn, at spec\.storage\.spec\.s3\.accesskey/);
      assert.ok(!message.includes(accessKey));
      const pauses = pausesIn(await untilRare(mark, team, "goharbor.io/harborclusters/harbor"));
      assert.ok(isDoubling(pauses.slice(2)), `${pauses}`);
    });
  });

  it("is written soon after the user stops, and Contended ends a while later, or at once by a requested sync", async () => {
    const team = await createNamespace();
    const accessKey = await team.boundHarbor();
    await againstRival(team, () => team.until("harbor-s3", "Contended"));
    await eventually(async () => assert.equal((await team.s3()).accesskey, accessKey));
    const { message } = contended(await team.until("harbor-s3", "Contended"));
    assert.match(message, /inlay sync harbor-s3 -n /);
    await team.api.merge(team.bindingPath("harbor-s3"), { metadata: { annotations: { "inlay.dev/refresh": "1" } } });
    await team.until("harbor-s3", "Synced", 5_000);
  });

  it("is written at once when its own value changes, also while it is contended", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    await againstRival(team, () => team.until("harbor-s3", "Contended"));
    const rotated = secretText("rotated");
    await team.secret("bucket", { accessKeyID: rotated });
    await eventually(async () => assert.equal((await team.s3()).accesskey, rotated), 2_000);
  });

  it("does not block the binding's other targets", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    await againstRival(team, () => team.until("harbor-s3", "Contended"));
    await team.harbor("other");
    const from = { source: "bucket", key: "accessKeyID" };
    await team.rebind("harbor-s3", {
      targets: [harborTarget({ accesskey: { from } }), harborTarget({ accesskey: { from } }, { name: "other" })],
    });
    await eventually(async () => assert.ok((await team.s3("other")).accesskey));
  });
});

describe("bindings whose targets are each other's sources", () => {
  it("back off instead of writing without end", async () => {
    const team = await createNamespace({
      rules: [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch", "patch"] }],
    });
    const maps = team.path("v1", "configmaps");
    for (const name of ["one", "two"]) {
      await team.api.create(maps, { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: { text: "x" } });
    }
    const grow = (from: string, to: string) => ({
      sources: [{ configMap: { name: from } }],
      targets: [
        {
          apiVersion: "v1",
          kind: "ConfigMap",
          name: to,
          onConflict: "Force",
          fields: [{ path: "data.text", template: `{{${from}.text}}+` }],
        },
      ],
    });
    const mark = await auditLog().mark();
    await team.bind("there", grow("one", "two"));
    await team.bind("back", grow("two", "one"));
    for (const name of ["there", "back"]) {
      assert.match(contended(await team.until(name, "Contended")).message, / this loop/);
    }
    const [one, two] = await Promise.all(["one", "two"].map((name) => untilRare(mark, team, `configmaps/${name}`)));
    const writes = [one, two].map((times) => times?.length ?? 0);
    assert.ok(Math.max(...writes) <= 9, `${writes} writes`);
  });

  it("back off too when the loop includes another user", async () => {
    const rules = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch", "patch"] }];
    const team = await createNamespace({ rules });
    const maps = team.path("v1", "configmaps");
    for (const name of ["one", "two"]) await team.api.create(maps, { metadata: { name }, data: { text: "x" } });
    const mark = await auditLog().mark();
    let last = "";
    const copy = async () => {
      const { data } = await team.api.get(`${maps}/two`);
      if (data.text !== last) await team.api.merge(`${maps}/one`, { data }, "copier");
      last = data.text;
    };
    await whileBusy(copy, 0, async () => {
      const fields = [{ path: "data.text", template: "{{one.text}}+" }];
      await team.bind("grows", {
        sources: [{ configMap: { name: "one" } }],
        targets: [{ apiVersion: "v1", kind: "ConfigMap", name: "two", onConflict: "Force", fields }],
      });
      assert.match(contended(await team.until("grows", "Contended", 45_000)).message, /sixty times/);
      const { length } = await untilRare(mark, team, "configmaps/two");
      assert.ok(length >= 60 && length <= 68, `${length} writes`);
    });
  });
});
