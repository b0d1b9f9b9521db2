/**
 * Shows VaultSyncStatuses under compositions/vault-sync-status, with a real Vault: what restarts, what users see, and what
 * authors can't reach.
 */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { may } from "../controller/access.ts";
import { Api } from "../controller/api.ts";
import { whileBusy } from "../controller/busy.ts";
import { eventually } from "../controller/eventually.ts";
import { applyFile } from "../controller/manifests.ts";
import { createNamespace, RESTARTED_WITHIN_MS, type Rule } from "../controller/test-namespace.ts";
import {
  API_VERSION,
  GROUP,
  INLAY,
  installVaultSync,
  PLACEHOLDER,
  PLURAL,
  POLICY_FILE,
  removeVaultSync,
  SyncTeam,
  setReach,
} from "../controller/vault-sync.ts";
import { MOUNT, VaultSetUp } from "../controller/vault-team.ts";

const IN_SYNC = "Already in Sync";
const SYNCED = "Synced";
const ROLLING_OUT = "Rolling out";
const ERROR = "Error";
const OLD = "2020-01-01T00:00:00.000000000Z";

describe("a VaultSyncStatus", function () {
  this.timeout("2m");
  let setUp: VaultSetUp;

  before(async function () {
    this.timeout("20m");
    setUp = await VaultSetUp.start();
    await setUp.vault.enableAudit();
    await installVaultSync(setUp.vault);
  });
  after(async () => {
    await setUp.stop();
    await removeVaultSync();
  });

  it("restarts its Deployment once for a change during the move, and for each later change, and not because it is new", async () => {
    const team = await SyncTeam.create(setUp.vault);
    const { shop } = team;
    await shop.deploy({ current: {}, behind: {}, fresh: {} });
    const before = await team.change("behind");
    const current = await team.change("current");
    const [behind, fresh] = [await team.change("behind"), await team.change("fresh")];
    const ended = new AbortController();
    const shown = team.statuses(ended.signal);
    await team.sync("current", current);
    await team.sync("behind", before);
    await team.sync("fresh", PLACEHOLDER);
    await team.until("current", IN_SYNC, current);
    await team.until("behind", SYNCED, behind);
    await team.until("fresh", IN_SYNC, fresh);
    assert.deepEqual(await shop.restarts(), { current: 0, behind: 1, fresh: 0 });
    assert.match((await shop.annotations("behind"))["kubectl.kubernetes.io/restartedAt"] ?? "", /^\d{4}-.*Z$/);
    const next = await team.change("fresh");
    await team.until("fresh", SYNCED, next);
    assert.deepEqual(await shop.restarts(), { current: 0, behind: 1, fresh: 1 });
    ended.abort();
    assert.deepEqual([...(await shown)].toSorted(), [IN_SYNC, ROLLING_OUT, SYNCED]);
  });

  it("is in sync only after the rollout, also if the controller is killed before that or the image does not exist", async () => {
    const team = await SyncTeam.create(setUp.vault);
    const { shop } = team;
    await shop.deploy({ killed: {}, broken: {} });
    const first = { killed: await team.change("killed"), broken: await team.change("broken") };
    for (const [name, timeStamp] of Object.entries(first)) {
      await team.sync(name, PLACEHOLDER);
      await team.until(name, IN_SYNC, timeStamp);
    }
    await team.team.api.merge(shop.path("killed"), { spec: { paused: true } });
    // No node accepts its pods, as if no node could pull the image.
    const pods = (nodeSelector: object | null) => ({ template: { spec: { nodeSelector } } });
    await team.team.api.merge(shop.path("broken"), {
      spec: { progressDeadlineSeconds: 1, ...pods({ nowhere: "true" }) },
    });
    const second = { killed: await team.change("killed"), broken: await team.change("broken") };
    await team.until("killed", ROLLING_OUT, first.killed);
    await team.until("broken", ERROR, first.broken);
    assert.match((await team.get("broken")).status.vault_sync.Rollout, /Deployment .*broken/);
    await setUp.controller.stop("SIGKILL");
    await team.team.api.merge(shop.path("killed"), { spec: { paused: false } });
    await team.team.api.merge(shop.path("broken"), { spec: pods(null) });
    await shop.run(["killed", "broken"]);
    assert.equal((await team.get("killed")).spec.timeStamp, first.killed);
    await setUp.controller.start();
    await team.until("killed", SYNCED, second.killed, RESTARTED_WITHIN_MS);
    await team.until("broken", SYNCED, second.broken);
    assert.equal((await shop.restarts())["killed"], 1);
  });

  it("reports what is wrong with it, and does not delay other objects", async () => {
    const [team, other] = await Promise.all([SyncTeam.create(setUp.vault), SyncTeam.create(setUp.vault)]);
    const { shop } = team;
    await shop.deploy({ good: {}, lacks: {}, denied: {}, contended: {} });
    await other.shop.deploy({ outside: {} });
    const stamps = new Map<string, string>();
    for (const name of ["good", "missing", "lacks", "outside", "contended"]) stamps.set(name, await team.change(name));
    await team.sync("missing", OLD);
    await team.sync("lacks", OLD, { secretPath: undefined });
    await team.sync("denied", OLD, { secretPath: "denied/db" });
    await team.sync("outside", OLD, { deployNamespace: other.team.namespace });
    await team.sync("contended", PLACEHOLDER);
    await team.sync("good", PLACEHOLDER);
    await team.until("good", IN_SYNC, stamps.get("good"));
    await team.until("contended", IN_SYNC, stamps.get("contended"));

    // Their operator still runs.
    const operator = async () => {
      if ((await team.get("contended")).spec.timeStamp !== OLD)
        await team.team.api.merge(team.path("contended"), { spec: { timeStamp: OLD } }, "kopf");
    };
    await whileBusy(operator, 50, async () => {
      const why: [name: string, field: "Message" | "Rollout", says: RegExp][] = [
        ["missing", "Rollout", /Deployment .*missing/],
        ["lacks", "Message", /spec\.secretPath/],
        ["denied", "Rollout", /denied\/db/],
        ["outside", "Message", /the namespace of the claim/],
        ["contended", "Message", /kopf, at spec\.timeStamp, keeps /],
      ];
      for (const [name, field, says] of why) {
        const { status } = await team.until(name, ERROR);
        await eventually(async () => assert.match((await team.get(name)).status.vault_sync[field], says));
        assert.ok(status.vault_sync.Message, name);
      }
      const next = await team.change("good");
      await team.until("good", SYNCED, next, 10_000);
    });
    for (const name of ["missing", "lacks", "denied", "outside"])
      assert.equal((await team.get(name)).spec.timeStamp, OLD, name);
    const { stdout } = await controlPlane().kubectl("get", "events", `--namespace=${team.team.namespace}`);
    assert.match(stdout, /OutOfReach +vaultsyncstatus\/outside/);
    assert.match(stdout, /FieldNotFound +vaultsyncstatus\/lacks/);
    assert.deepEqual(await shop.restarts(), { good: 1, lacks: 0, denied: 0, contended: 0 });
    assert.deepEqual(await other.shop.restarts(), { outside: 0 });

    await team.shop.deploy({ missing: {} });
    await team.until("missing", IN_SYNC, stamps.get("missing"));
  });

  it("restarts a Deployment of another namespace only with reach: Cluster, and for an author who may patch it", async () => {
    const [team, other] = await Promise.all([SyncTeam.create(setUp.vault), SyncTeam.create(setUp.vault)]);
    const carol = new Api(controlPlane(), "carol");
    const give = async (to: SyncTeam, ...rules: Rule[]) => {
      const rbac = (plural: string) => to.team.path("rbac.authorization.k8s.io/v1", plural);
      const metadata = { name: "carol" };
      await to.team.api.create(rbac("roles"), { metadata, rules });
      await to.team.api.create(rbac("rolebindings"), {
        metadata,
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "carol" },
        subjects: [{ kind: "User", name: "carol", apiGroup: "rbac.authorization.k8s.io" }],
      });
    };
    await other.shop.deploy({ web: {} });
    const changed = await other.change("web");
    const collection = team.team.path(API_VERSION, PLURAL);
    const object = (spec: object) => ({
      apiVersion: API_VERSION,
      kind: "VaultSyncStatus",
      metadata: { name: "web" },
      spec,
    });
    const theirs = object({ ...other.spec("web"), timeStamp: OLD });
    await applyFile(team.team.api, POLICY_FILE);
    await give(team, { apiGroups: [GROUP], resources: [PLURAL], verbs: ["create", "patch"] });
    // Permissions and policies take effect a moment after they are written.
    const refused = /carol .*patch deployments\.apps "web" in namespace team-/;
    await eventually(() => assert.rejects(carol.dryRun.create(collection, theirs), refused));
    await carol.create(collection, object({ timeStamp: OLD }));
    const path = team.path("web");
    await assert.rejects(carol.merge(path, theirs), refused);
    // Another path would restart the Deployment also if another user had created the object.
    await team.team.api.merge(path, theirs);
    await assert.rejects(carol.merge(path, object({ secretPath: "often" })), refused);
    await assert.rejects(
      carol.merge(path, object({ secretPath: null })).then(() => carol.merge(path, theirs)),
      refused,
    );
    await carol.merge(path, object({ timeStamp: PLACEHOLDER }));
    await give(other, { apiGroups: ["apps"], resources: ["deployments"], resourceNames: ["web"], verbs: ["patch"] });
    await eventually(() => carol.merge(path, theirs));
    await team.until("web", ERROR, OLD);
    try {
      await setReach(team.team.api, "Cluster");
      await team.until("web", SYNCED, changed);
      assert.deepEqual(await other.shop.restarts(), { web: 1 });
    } finally {
      await setReach(team.team.api, "ClaimNamespace");
    }
  });

  it("uses an account that reads no value of Vault and no Secret of a team, and restarts workloads only in opened namespaces", async () => {
    const { namespace } = await createNamespace({ account: false, rules: [], controller: false });
    const deployments = { group: "apps", resource: "deployments", namespace };
    assert.equal(await may(INLAY, { verb: "patch", ...deployments }), false);
    assert.equal(await may(INLAY, { verb: "get", resource: "secrets", namespace }), false);
    assert.equal(await may(INLAY, { verb: "*", group: "*", resource: "*" }), false);
    const asked = (await setUp.vault.requests()).filter(
      ({ who, path }) => who !== "root" && path.startsWith(`${MOUNT}/`),
    );
    assert.ok(asked.length > 0);
    assert.deepEqual(
      asked.filter(({ operation, path }) => operation !== "read" || !path.startsWith(`${MOUNT}/metadata/`)),
      [],
    );
  });
});
