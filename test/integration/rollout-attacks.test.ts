/** Shows that authors of bindings gain nothing by restarting workloads beyond the permissions of their account. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { createNamespace, type TestNamespace, usualRules } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const sources = [{ secret: { name: "bucket" } }];
const rotate = (team: TestNamespace) => team.secret("bucket", { access: secretText("access") });

/** Creates a team with a workload that uses a key of the Secret. */
async function newShop(rules = rolloutRules): Promise<{ team: TestNamespace; shop: Workloads }> {
  const team = await createNamespace({ rules });
  const shop = new Workloads(team);
  await rotate(team);
  await shop.deploy({ core: { env: { bucket: ["access"] } } });
  return { team, shop };
}

describe("an author of bindings who restarts workloads", function () {
  this.timeout("2m");

  it("restarts none that the account may read and not patch, and the condition names the command that allows it", async () => {
    const sees = { apiGroups: ["apps"], resources: ["deployments"], verbs: ["get", "list", "watch"] };
    const { team, shop } = await newShop([...usualRules, sees]);
    await team.bind("rolls", { sources, rollout: { consumersOf: ["bucket"], kinds: ["Deployment"] } });
    await shop.rolledOut("rolls", 0);
    const before = await team.api.get(shop.path("core"));
    await rotate(team);
    const { status } = await shop.until("rolls", "Forbidden");
    assert.match(status.conditions[1].message, /kubectl create role .*patch.*--resource=deployments\.apps/);
    assert.equal((await team.api.get(shop.path("core"))).metadata.generation, before.metadata.generation);
  });

  for (const [what, target, reason] of [
    ["a Role", { apiVersion: "rbac.authorization.k8s.io/v1", kind: "Role", template: "rules" }, "ForbiddenKind"],
    ["a binding", { apiVersion: "inlay.dev/v1alpha1", kind: "SecretBinding", template: "spec" }, "ForbiddenKind"],
    ["the metadata of a workload", { kind: "Deployment", template: "metadata" }, "ForbiddenPath"],
    ["its status", { kind: "Deployment", template: "status" }, "ForbiddenPath"],
    ["one of its containers", { kind: "Deployment", template: "spec.template.spec.containers[0]" }, "InvalidPath"],
    [
      "the account of its pods",
      { kind: "Deployment", restartPath: "spec.template.spec.serviceAccountName" },
      "ForbiddenPath",
    ],
    ["a Namespace", { apiVersion: "v1", kind: "Namespace", template: "spec" }, "InvalidBinding"],
  ] as const) {
    it(`has no restart annotation written into ${what}`, async () => {
      const { team, shop } = await newShop();
      await team.bind("rolls", { sources, rollout: { targets: [{ name: "core", ...target }] } });
      await shop.until("rolls", reason);
      const before = await team.api.get(shop.path("core"));
      const requests = await team.requestsDuring(() => rotate(team));
      assert.deepEqual(
        requests.filter(({ verb, name }) => verb === "patch" && name === "core"),
        [],
      );
      assert.equal((await team.api.get(shop.path("core"))).metadata.generation, before.metadata.generation);
    });
  }

  it("changes no Secret by naming it as a workload, even if the account may patch it", async () => {
    const patches = { apiGroups: [""], resources: ["secrets"], verbs: ["patch"] };
    const { team, shop } = await newShop([...rolloutRules, patches]);
    await team.secret("theirs", { token: secretText("token") });
    const path = `${team.path("v1", "secrets")}/theirs`;
    const before = await team.api.get(path);
    const targets = [{ apiVersion: "v1", kind: "Secret", name: "theirs", template: "data" }];
    await team.bind("rolls", { sources, rollout: { targets } });
    await shop.until("rolls", "ForbiddenKind");
    const requests = await team.requestsDuring(() => rotate(team));
    // The Secret is not even read.
    assert.deepEqual(
      requests.filter(({ name, uri }) => name === "theirs" || uri.includes("theirs")),
      [],
    );
    assert.equal((await team.api.get(path)).metadata.resourceVersion, before.metadata.resourceVersion);
  });

  it("learns nothing about a value from status or the restart annotation, by hashed guesses or by comparing equal values", async () => {
    const { team, shop } = await newShop();
    const value = secretText("guessed");
    await team.secret("bucket", { access: secretText("access"), same: secretText("same") });
    await shop.deploy({ other: { env: { bucket: ["same"] } } });
    await team.bind("rolls", { sources, rollout: { consumersOf: ["bucket"] } });
    const { metadata } = await shop.rolledOut("rolls", 0);
    await team.secret("bucket", { access: value, same: value });
    const { status } = await shop.rolledOut("rolls", 1);
    const { digests, digestKeyID } = status.rollout;
    assert.notEqual(digests["bucket/access"], digests["bucket/same"]);
    const stamps = (await Promise.all(["core", "other"].map((name) => shop.annotations(name)))).flatMap((each) =>
      Object.values(each),
    );
    assert.equal(stamps.length, 2);
    const shown = [...Object.values<string>(digests), ...stamps].join("\n").toLowerCase();
    // Public inputs, in each order, before and after the guess.
    const known = ["", digestKeyID, metadata.uid, "bucket", "access", "bucket/access", `${team.namespace}/rolls`];
    const guesses = known.flatMap((salt) =>
      ["", "/", ":", "\n", "="].flatMap((by) => [salt + by + value, value + by + salt]),
    );
    for (const guess of guesses)
      for (const algorithm of ["md5", "sha1", "sha256", "sha512"])
        for (const encoding of ["hex", "base64", "base64url"] as const) {
          const hash = createHash(algorithm).update(guess).digest(encoding).toLowerCase();
          assert.ok(!shown.includes(hash.slice(0, 10)), `${algorithm} in ${encoding}`);
        }
  });

  it("restarts it no more often than maxDebounce and minInterval allow, by a value that changes all the time", async () => {
    const { team, shop } = await newShop();
    const pace = { debounce: "30s", maxDebounce: "2s", minInterval: "1h" };
    await team.bind("rolls", { sources, rollout: { consumersOf: ["bucket"], ...pace } });
    await shop.rolledOut("rolls", 0);
    const began = Date.now();
    let changes = 0;
    for (; Date.now() < began + 7_000; changes++) await rotate(team);
    // The last change belongs to the current rollout, or to the next one in an hour.
    const { status } = await eventually(async () => {
      const found = await team.binding("rolls");
      assert.match(found.status.conditions[1].reason, /^(RolledOut|MinInterval)$/);
      return found;
    });
    assert.equal(status.rollout.revision, 1);
    const most = Math.ceil((Date.now() - began) / 2_000);
    const { core = 0 } = await shop.restarts();
    assert.ok(core >= 1 && core <= most, `${core} restarts for ${changes} changes, of ${most}`);
    await rotate(team);
    await shop.until("rolls", "MinInterval");
    assert.equal((await shop.restarts())["core"], core);
  });

  it("rolls out no more at once than maxConcurrent allows, and all wait for a workload that does not become ready", async () => {
    const { team, shop } = await newShop();
    await shop.deploy({ jobs: { env: { bucket: ["access"] } } });
    await team.bind("rolls", { sources, rollout: { consumersOf: ["bucket"], maxConcurrent: 1 } });
    await shop.rolledOut("rolls", 0);
    // From now on, no node accepts its pods.
    await team.api.merge(shop.path("core"), { spec: { template: { spec: { nodeSelector: { nowhere: "true" } } } } });
    await rotate(team);
    const { status } = await shop.until("rolls", "MaxConcurrent");
    const states = status.rollout.pending.workloads.map(({ name, state }: AnyObject) => `${name} ${state}`);
    assert.deepEqual(states, ["core Rolling", "jobs Waiting"]);
    assert.equal((await shop.restarts())["jobs"], 0);
  });
});
