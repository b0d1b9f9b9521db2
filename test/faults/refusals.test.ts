/**
 * An API server that refuses requests. The controller retries with backoff, keeps what was written, and writes nothing
 * twice.
 */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { whileBusy } from "../controller/busy.ts";
import { eventually } from "../controller/eventually.ts";
import { requestsFor } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { type TestNamespace, usualRules } from "../controller/test-namespace.ts";
import { ProxiedController } from "./proxied-controller.ts";

const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1";
/** How long recovery may take after a server had trouble. The backoff of the server and of Inlay grows to 30 s. */
const TROUBLE_MS = 45_000;

/** Four requests at once as the account of a team. Most are refused, as Inlay's are. */
async function crowd({ api, namespace }: TestNamespace, writes: boolean): Promise<void> {
  const account = api.as(`system:serviceaccount:${namespace}:inlay`);
  const review = { spec: { resourceAttributes: { verb: "get", resource: "secrets", namespace } } };
  const send = () =>
    writes
      ? account.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
      : account.get(`/api/v1/namespaces/${namespace}/secrets`);
  await Promise.all(Array.from({ length: 4 }, () => send().catch(() => {})));
}

describe("when the API server refuses", function () {
  this.timeout("2m");
  let proxied: ProxiedController;

  before(async () => {
    proxied = await ProxiedController.start(40);
  });
  after(() => proxied?.stop());

  it("list and watch of a binding's account with 403, the written values stay, and the binding is synced once they succeed", async () => {
    const { fleet, proxy } = proxied;
    const { team } = fleet;
    const [mark, before] = [await auditLog().mark(), await fleet.generations()];
    const streams = await proxied.streams("synced");
    await team.revoke();
    proxy.cut();
    await Promise.all(fleet.names.map((name) => team.until(name, "Forbidden", TROUBLE_MS)));
    await fleet.rotate();
    // Where RBAC denies the request, the controller opens no stream.
    await eventually(async () => assert.ok((await proxied.streams("synced")) < streams));
    assert.equal(await proxied.streams("failed"), 0);
    assert.deepEqual(await fleet.generations(), before);
    await team.grant(usualRules, { role: "again" });
    await fleet.inStep(TROUBLE_MS);
    await proxied.writtenOnce(mark, before);
    await proxied.isWell();
    // The account may watch some Secrets by name while it may not watch all. Then each Secret has a stream, for a limited
    // time.
    await eventually(async () => assert.equal(await proxied.streams("synced"), streams));
  });

  it("the controller itself with 403, it is not ready, and continues once the requests succeed", async () => {
    const { fleet, proxy } = proxied;
    const { api } = fleet.team;
    const name = "inlay-controller";
    const { roleRef, subjects } = await api.get(`${RBAC}/clusterrolebindings/${name}`);
    const [mark, before] = [await auditLog().mark(), await fleet.generations()];
    const streams = await proxied.streams("synced");
    await api.delete(`${RBAC}/clusterrolebindings/${name}`);
    try {
      proxy.cut();
      await eventually(async () => assert.match(await proxied.readiness(), /^failed: inlay\.dev\/secretbindings$/m));
      await fleet.rotate();
      // The controller may impersonate no account, so a stream for each name would be refused too.
      assert.ok((await proxied.streams("failed")) <= streams);
    } finally {
      await api.create(`${RBAC}/clusterrolebindings`, { metadata: { name }, roleRef, subjects });
    }
    await fleet.inStep(TROUBLE_MS);
    await proxied.writtenOnce(mark, before);
    await proxied.isWell();
    assert.equal(await proxied.streams("synced"), streams);
  });

  for (const [what, verbs] of Object.entries({
    "reads and watches": ["get", "list", "watch"],
    writes: ["patch", "update", "create"],
  })) {
    it(`${what} with 429, because it serves one at a time, each binding is synced once`, async () => {
      const { fleet, proxy } = proxied;
      const { team } = fleet;
      const before = await fleet.generations();
      const refused = await auditLog().mark();
      const end = await refuse(verbs);
      let rotations = 0;
      try {
        if (verbs.includes("watch")) proxy.cut();
        const isRefused = async () => {
          await fleet.rotate();
          rotations++;
          const requests = await requestsFor(team, refused);
          assert.ok(requests.some(({ verb, code }) => verbs.includes(verb) && code === 429));
        };
        // Requests of Inlay meet those of the crowd.
        await whileBusy(
          () => crowd(team, verbs.includes("create")),
          0,
          () => eventually(isRefused),
        );
      } finally {
        await end();
      }
      await fleet.inStep(TROUBLE_MS);
      const after = await fleet.generations();
      for (const name of fleet.names) {
        const changes = (after.get(name) ?? 0) - (before.get(name) ?? 0);
        assert.ok(changes >= 1 && changes <= rotations, `${name}: ${changes} changes for ${rotations} rotations`);
      }
      await proxied.isWell(TROUBLE_MS);
    });
  }

  /**
   * Makes API Priority and Fairness serve one of these requests at a time, for all accounts together. Call the returned
   * function to end this.
   */
  async function refuse(verbs: string[]): Promise<() => Promise<void>> {
    const { api } = proxied.fleet.team;
    const metadata = { name: "no-place" };
    const limited = {
      nominalConcurrencyShares: 0,
      lendablePercent: 0,
      borrowingLimitPercent: 0,
      limitResponse: { type: "Reject" },
    };
    const groups = [proxied.fleet.team.namespace, "inlay-system"].map((namespace) => ({
      kind: "Group",
      group: { name: `system:serviceaccounts:${namespace}` },
    }));
    const everything = { apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true };
    await api.create(`${FLOWS}/prioritylevelconfigurations`, { metadata, spec: { type: "Limited", limited } });
    await api.create(`${FLOWS}/flowschemas`, {
      metadata,
      spec: {
        priorityLevelConfiguration: metadata,
        matchingPrecedence: 2,
        rules: [{ subjects: groups, resourceRules: [{ verbs, ...everything }] }],
      },
    });
    // The configuration takes effect after a moment.
    await eventually(async () => {
      const { status } = await api.get(`${FLOWS}/flowschemas/${metadata.name}`);
      assert.deepEqual(
        status.conditions?.map(({ type, status: is }: AnyObject) => [type, is]),
        [["Dangling", "False"]],
      );
    });
    return async () => {
      await api.delete(`${FLOWS}/flowschemas/${metadata.name}`);
      await api.delete(`${FLOWS}/prioritylevelconfigurations/${metadata.name}`);
    };
  }
});
