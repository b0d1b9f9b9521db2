/** Others who keep changing a field back: the binding does not fight them, and says who it is. */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/hunted.ts";
import { auditLog } from "../controller/shared.ts";
import { harborTarget, newTeam, pause, type Team } from "../controller/team.ts";

const WATCHED_MS = 6_000;

/** When bindings changed the targets of a team since a mark, in milliseconds. */
async function changesSince(mark: number, team: Team): Promise<number[]> {
  const changes = (await auditLog().since(mark)).filter(
    ({ verb, resource, as, code }) =>
      verb === "patch" &&
      code === 200 &&
      resource === "goharbor.io/harborclusters" &&
      as === `system:serviceaccount:${team.namespace}:inlay`,
  );
  return changes.map(({ at }) => Date.parse(at)).sort((a, b) => a - b);
}

/** Puts the access key back whenever it is changed, until told to stop. */
function rivalOf(team: Team, manager: string): { stop(): Promise<void> } {
  let stopped = false;
  const work = (async () => {
    while (!stopped) {
      if ((await team.s3()).accesskey !== "theirs") await team.editS3({ accesskey: "theirs" }, manager);
      await pause(20);
    }
  })();
  return {
    stop: () => {
      stopped = true;
      return work;
    },
  };
}

const contended = (binding: AnyObject) => binding.status.conditions[0];

describe("a target of which somebody keeps changing other fields", () => {
  it("takes every new value at once, and nobody is said to fight", async () => {
    const team = await newTeam();
    await team.boundHarbor();
    let stopped = false;
    const busy = (async () => {
      for (let n = 0; !stopped; n++) {
        await team.editS3({ rootdirectory: `/${n}` }, "busy");
        await pause(5);
      }
    })();
    try {
      for (let n = 0; n < 25; n++) {
        const accessKeyID = secretText("rotated");
        await team.secret("bucket", { accessKeyID });
        await eventually(async () => assert.equal((await team.s3()).accesskey, accessKeyID), 5_000);
      }
    } finally {
      stopped = true;
      await busy;
    }
    const events = await team.events("harbor-s3");
    assert.deepEqual(
      events.filter(({ reason }) => reason === "Contended"),
      [],
    );
    await team.until("harbor-s3", "Synced");
  });
});

describe("a field that somebody keeps changing back", () => {
  it("is written three times at once and then more and more rarely, and the condition names him", async () => {
    const team = await newTeam();
    const accessKey = await team.boundHarbor();
    const mark = await auditLog().mark();
    const rival = rivalOf(team, "stubborn");
    try {
      const { status, message } = contended(await team.until("harbor-s3", "Contended"));
      assert.equal(status, "False");
      assert.match(message, /: stubborn, at spec\.storage\.spec\.s3\.accesskey, keeps changing/);
      assert.ok(!message.includes(accessKey));
      const times = await eventually(async () => {
        const all = await changesSince(mark, team);
        assert.ok(all.length >= 5, `${all.length} writes`);
        return all;
      });
      const pauses = times.slice(3).map((time, n) => time - (times[n + 2] as number));
      // Of 1, 2, 4 seconds and so on; the times are read to the millisecond.
      assert.ok(
        pauses.every((ms, n) => ms >= 1_000 * 2 ** n - 1),
        `${pauses}`,
      );
    } finally {
      await rival.stop();
    }
  });

  it("is the binding's again soon after he stops, which is said once it has stayed for a minute", async () => {
    const team = await newTeam();
    const accessKey = await team.boundHarbor();
    const rival = rivalOf(team, "stubborn");
    await team.until("harbor-s3", "Contended").finally(() => rival.stop());
    await eventually(async () => assert.equal((await team.s3()).accesskey, accessKey));
    await team.until("harbor-s3", "Contended");
  });

  it("is written at once when its own value changes, fight or not", async () => {
    const team = await newTeam();
    await team.boundHarbor();
    const rival = rivalOf(team, "stubborn");
    await team.until("harbor-s3", "Contended").finally(() => rival.stop());
    const rotated = secretText("rotated");
    await team.secret("bucket", { accessKeyID: rotated });
    await eventually(async () => assert.equal((await team.s3()).accesskey, rotated), 2_000);
  });

  it("does not keep the binding's other targets from being written", async () => {
    const team = await newTeam();
    await team.boundHarbor();
    const rival = rivalOf(team, "stubborn");
    await team.until("harbor-s3", "Contended").finally(() => rival.stop());
    await team.harbor("other");
    const from = { source: "bucket", key: "accessKeyID" };
    await team.rebind("harbor-s3", {
      targets: [harborTarget({ accesskey: { from } }), harborTarget({ accesskey: { from } }, { name: "other" })],
    });
    await eventually(async () => assert.ok((await team.s3("other")).accesskey));
  });
});

describe("bindings that feed each other", () => {
  it("come to rest instead of writing for ever", async () => {
    const team = await newTeam({
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
    await pause(WATCHED_MS);
    const writes = (await auditLog().since(mark)).filter(
      ({ verb, namespace, resource }) => verb === "patch" && namespace === team.namespace && resource === "configmaps",
    );
    assert.ok(writes.length <= 18, `${writes.length} writes`);
    for (const name of ["there", "back"]) {
      assert.match(contended(await team.until(name, "Contended")).message, /Break the circle/);
    }
  });

  it("come to rest too when the circle goes through somebody who is no binding", async () => {
    const rules = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch", "patch"] }];
    const team = await newTeam({ rules });
    const maps = team.path("v1", "configmaps");
    for (const name of ["one", "two"]) await team.api.create(maps, { metadata: { name }, data: { text: "x" } });
    const mark = await auditLog().mark();
    let stopped = false;
    const copier = (async () => {
      let last = "";
      while (!stopped) {
        const { data } = await team.api.get(`${maps}/two`);
        if (data.text !== last) await team.api.merge(`${maps}/one`, { data }, "copier");
        last = data.text;
      }
    })();
    try {
      const fields = [{ path: "data.text", template: "{{one.text}}+" }];
      await team.bind("grows", {
        sources: [{ configMap: { name: "one" } }],
        targets: [{ apiVersion: "v1", kind: "ConfigMap", name: "two", onConflict: "Force", fields }],
      });
      assert.match(contended(await team.until("grows", "Contended", 45_000)).message, /sources changed sixty times/);
      await pause(WATCHED_MS);
    } finally {
      stopped = true;
      await copier;
    }
    const writes = (await auditLog().since(mark)).filter(
      ({ verb, namespace, name, as }) => verb === "patch" && namespace === team.namespace && name === "two" && as,
    );
    assert.ok(writes.length >= 60 && writes.length <= 68, `${writes.length} writes`);
  });
});
