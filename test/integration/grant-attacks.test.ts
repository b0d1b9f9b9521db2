/** Tenants who try to read a Secret of another namespace that was granted to others or not at all. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { Api, RequestFailed } from "../controller/api.ts";
import type { AuditedRequest } from "../controller/audit.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { type Neighbours, newGranted, newNeighbours } from "../controller/neighbours.ts";
import { requestsFor } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { usualRules } from "../controller/test-namespace.ts";

describe("a tenant without a grant", () => {
  const MALLORY = "bob";

  /** A tenant with a role in the reader's namespace, and its requests that RBAC refuses with 403. */
  async function tenant({ reader }: Neighbours, role: "edit" | "admin") {
    const mallory = new Api(controlPlane(), MALLORY);
    await reader.api.create(reader.path("rbac.authorization.k8s.io/v1", "rolebindings"), {
      metadata: { name: "mallory" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
      subjects: [{ kind: "User", name: MALLORY, apiGroup: "rbac.authorization.k8s.io" }],
    });
    await eventually(() => mallory.get(reader.path("v1", "secrets")), 10_000);
    return mallory;
  }
  const isForbidden = (error: unknown) => error instanceof RequestFailed && error.status === 403;
  const bindings = ({ reader }: Neighbours) => reader.path("inlay.dev/v1alpha1", "secretbindings");
  const grants = (team: Neighbours["owner"]) => team.path("inlay.dev/v1alpha1", "secretgrants");
  const binding = (both: Neighbours, spec = both.spec()) => ({
    apiVersion: "inlay.dev/v1alpha1",
    kind: "SecretBinding",
    metadata: { name: "harbor-s3" },
    spec,
  });
  const forged = (both: Neighbours) => ({
    apiVersion: "inlay.dev/v1alpha1",
    kind: "SecretGrant",
    metadata: { name: "forged" },
    spec: {
      from: [{ namespace: both.reader.namespace }],
      to: [{ kind: "Secret", selector: { names: ["*"] } }],
    },
  });
  const staysOut = async (both: Neighbours, reason = "NotGranted", barrier = () => both.barrier()) => {
    await both.reader.until("harbor-s3", reason);
    await barrier();
    await both.reader.until("harbor-s3", reason);
    assert.equal((await both.reader.s3()).accesskey, undefined);
  };
  /** Waits until a request of the account was refused once more, or its permissions were requested once more. */
  const refusedAgain = async ({ reader }: Neighbours) => {
    const mark = await auditLog().mark();
    await eventually(async () => {
      const requests = await requestsFor(reader, mark);
      const isRefusal = ({ code, resource }: AuditedRequest) =>
        code === 403 || resource.endsWith("/selfsubjectrulesreviews");
      assert.ok(requests.some((request) => request.as !== undefined && isRefusal(request)));
    });
    await reader.barrier();
  };

  it("may name the Secret in a binding, may not create the grant there, and gains nothing by one in the own namespace", async () => {
    const { both } = await newNeighbours();
    const mallory = await tenant(both, "admin");
    await mallory.create(bindings(both), binding(both));
    await assert.rejects(mallory.create(grants(both.owner), forged(both)), isForbidden);
    await eventually(() => mallory.create(grants(both.reader), forged(both)), 10_000);
    await staysOut(both);
  });

  it("may create no grant with the role edit", async () => {
    const { both } = await newNeighbours();
    const mallory = await tenant(both, "edit");
    for (const team of [both.owner, both.reader]) {
      await assert.rejects(mallory.create(grants(team), forged(both)), isForbidden);
    }
  });

  it("has no binding write the grant, even if its account may", async () => {
    const { both } = await newNeighbours();
    const all = ["get", "list", "watch", "create", "patch", "delete"];
    const rights = [{ apiGroups: ["inlay.dev"], resources: ["secretgrants"], verbs: all }];
    await both.reader.grant(rights, { role: "grants", namespace: both.owner.namespace });
    const mallory = await tenant(both, "edit");
    await both.reader.secret("own", { a: secretText("own") });
    const { apiVersion, kind, spec } = forged(both);
    const target = { apiVersion, kind, name: "forged", namespace: both.owner.namespace };
    await mallory.create(
      bindings(both),
      binding(both, {
        sources: [{ secret: { name: "own" } }],
        targets: [{ ...target, create: { manifest: { spec } } }],
      }),
    );
    await both.reader.until("harbor-s3", "ForbiddenKind");
    assert.deepEqual((await both.owner.api.get(grants(both.owner))).items, []);
  });

  it("changes the name of a granted Secret to another one, after the binding was accepted", async () => {
    const { both, value } = await newGranted();
    const mallory = await tenant(both, "edit");
    await both.rotate("other");
    const spec = both.spec({ name: "bucket", secret: { name: "other", namespace: both.owner.namespace } });
    await mallory.merge(both.reader.bindingPath("harbor-s3"), { spec });
    await both.reader.until("harbor-s3", "NotGranted");
    await both.barrier();
    assert.equal((await both.reader.s3()).accesskey, value);
  });

  it("uses a grant to another account, or to another namespace", async () => {
    const { both } = await newNeighbours();
    const mallory = await tenant(both, "edit");
    await both.grant("account", { from: [{ namespace: both.reader.namespace, serviceAccountName: "rotator" }] });
    await both.grant("namespace", { from: [{ namespace: both.owner.namespace }] });
    await mallory.create(bindings(both), binding(both));
    await staysOut(both);
  });

  for (const [rights, resourceNames] of Object.entries({ may: undefined, "may not": ["pulses"] })) {
    it(`does not learn by a grant for another uid or other labels whether the Secret exists, which its account ${rights} read`, async () => {
      const { both, value } = await newNeighbours({ rights: false });
      const { owner, reader } = both;
      const verbs = ["get", "list", "watch"];
      const rule = { apiGroups: [""], resources: ["secrets"], verbs, ...(resourceNames && { resourceNames }) };
      await reader.grant([rule], { role: `${reader.namespace}-reads`, namespace: owner.namespace });
      const to = [{ kind: "Secret", selector: { names: ["bucket", "absent"] } }];
      const from = [
        { namespace: reader.namespace, namespaceUID: "11111111-1111-1111-1111-111111111111" },
        { namespaceSelector: { names: [reader.namespace], matchLabels: { team: "other" } } },
        { namespaceSelector: { matchExpressions: [{ key: "team", operator: "Exists" }] } },
      ];
      for (const [n, each] of from.entries()) await both.grant(`other-${n}`, { from: [each], to });
      // The controller has read these grants by then.
      await both.barrier();
      const mark = await auditLog().mark();
      const names = { "harbor-s3": "bucket", absent: "absent" };
      for (const [name, secret] of Object.entries(names))
        await reader.bind(name, both.spec({ name: "bucket", secret: { name: secret, namespace: owner.namespace } }));
      for (const name of Object.keys(names)) await reader.until(name, "NotGranted");
      await reader.barrier();
      for (const name of Object.keys(names)) await reader.until(name, "NotGranted");
      const requests = await requestsFor(reader, mark);
      assert.deepEqual(
        requests.filter(({ namespace }) => namespace === owner.namespace),
        [],
      );
      if (resourceNames) return;
      await reader.api.merge(`/api/v1/namespaces/${reader.namespace}`, { metadata: { labels: { team: "other" } } });
      await both.untilHeld(value);
    });
  }

  it("creates a namespace with the name of a deleted one, to which a grant by uid was", async () => {
    const { both, value } = await newNeighbours();
    const { reader } = both;
    const home = `/api/v1/namespaces/${reader.namespace}`;
    const { metadata } = await reader.api.get(home);
    await both.grant("by-uid", { from: [{ namespace: reader.namespace, namespaceUID: metadata.uid }] });
    await reader.bind("harbor-s3", both.spec());
    await both.untilHeld(value);
    await reader.until("harbor-s3", "Synced");

    await reader.api.delete(home);
    await eventually(async () => assert.equal(await reader.api.find(home), undefined), 30_000);
    await reader.api.create("/api/v1/namespaces", { metadata: { name: reader.namespace } });
    await reader.createAccount();
    await reader.grant(usualRules);
    await reader.harbor();
    await reader.bind("harbor-s3", both.spec());
    await staysOut(both);

    await both.grant("by-name");
    await both.untilHeld(value);
  });

  it("finds a grant in kube-system, a closed namespace", async () => {
    const { both } = await newNeighbours();
    const spec = { sources: [{ secret: { name: "bucket", namespace: "kube-system" } }] };
    await both.reader.bind("harbor-s3", { ...both.spec(), ...spec });
    await both.reader.until("harbor-s3", "ForbiddenNamespace");
  });

  it("gains nothing by a grant without the permission of the account: RBAC decides too", async () => {
    const { both } = await newNeighbours({ rights: false });
    const mallory = await tenant(both, "edit");
    await both.grant("all", {
      from: [{ namespaceSelector: { names: ["*"] } }],
      to: [{ kind: "Secret", selector: { names: ["*"] } }],
    });
    await mallory.create(bindings(both), binding(both));
    await staysOut(both, "Forbidden", () => refusedAgain(both));
  });
});
